import { startAcaEmulator, type AcaEmulator, type EmulatorOptions } from "../src/index.ts";

export const current = "2025-10-02-preview";
export const older = "2024-02-02-preview";

/** The fields of all kinds of answers. A field that an answer lacks is undefined, and fails the test that reads it. */
interface AnyAnswer {
  readonly id: string;
  readonly status: string;
  readonly error: { readonly code: string; readonly message: string };
  readonly result: {
    readonly stdout: string;
    readonly stderr: string;
    readonly executionResult: unknown;
    readonly executionTimeInMilliseconds: number;
  };
  readonly value: readonly { readonly name: string }[];
  readonly properties: Readonly<Record<string, unknown>>;
  readonly preInstalledPackages: unknown;
  readonly nextLink: string;
  readonly lastModifiedAt: string;
  readonly lastAccessedAt: string;
  readonly expireAt: string;
}

/** A response to `fetch`, with its body read. */
export interface Reply {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  readonly json: AnyAnswer;
}

export interface CallOptions {
  readonly body?: unknown;
  readonly query?: Readonly<Record<string, string>>;
  readonly headers?: Readonly<Record<string, string>>;
  readonly identifier?: string;
  readonly version?: string;
}

/** A client built only on `fetch` and the service's documentation. */
export class Client implements AsyncDisposable {
  readonly emulator: AcaEmulator;

  constructor(emulator: AcaEmulator) {
    this.emulator = emulator;
  }

  static async open(options: EmulatorOptions = {}): Promise<Client> {
    return new Client(await startAcaEmulator(options));
  }

  async call(method: string, path: string, options: CallOptions = {}): Promise<Reply> {
    const { body, query, headers, identifier = "session-1", version = current } = options;
    const search = new URLSearchParams({ "api-version": version, identifier, ...query });
    const response = await fetch(`${this.emulator.endpoint}/${path}?${search.toString()}`, {
      method,
      headers: { authorization: `Bearer ${this.emulator.token()}`, ...headers },
      ...(body === undefined ? {} : { body: body instanceof FormData ? body : JSON.stringify(body) }),
    });
    const text = await response.text();
    return {
      status: response.status,
      headers: response.headers,
      text,
      json: (text.startsWith("{") ? JSON.parse(text) : undefined) as AnyAnswer,
    };
  }

  execute(code: string, fields: object = {}, options: CallOptions = {}): Promise<Reply> {
    const body = { codeInputType: "Inline", executionType: "Synchronous", code, ...fields };
    return this.call("POST", "executions", { ...options, body });
  }

  executeOlder(code: string, options: CallOptions = {}): Promise<Reply> {
    const properties = { codeInputType: "inline", executionType: "synchronous", code };
    return this.call("POST", "code/execute", { version: older, ...options, body: { properties } });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.emulator.stop();
  }
}

export function upload(name: string, content: string): FormData {
  const form = new FormData();
  form.append("note", "another field");
  form.append("file", new Blob([content]), name);
  return form;
}
