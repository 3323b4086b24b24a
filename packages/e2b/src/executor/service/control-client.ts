import { setTimeout as sleep } from "node:timers/promises";
import type { JsonObject } from "@fenced/core";
import { joinSignals } from "@fenced/core/abort";
import * as z from "zod";
import type { E2BExecutorOptions } from "../e2b-executor-options.ts";
import { answerOf, ServiceProblem } from "./answer-body.ts";
import {
  apiKeyOf,
  type SandboxAccess,
  sandboxAccess,
  type ServiceAddress,
  serviceAddress,
  withoutSlash,
} from "./service-address.ts";

/** Milliseconds for one answer, and for that to the wish for a sandbox. */
const [answerMs, creationMs] = [30_000, 300_000];
/** How often a request is repeated that the service has no room for, and how long each wait is at most, in milliseconds. */
const [mostRetries, longestWaitMs] = [3, 10_000];

const sandboxSchema = z.object({
  sandboxID: z.string().regex(/^[\w-]{1,128}$/),
  envdAccessToken: z.string().nullish(),
  domain: z
    .string()
    .regex(/^[\w.-]+(?::\d+)?$/)
    .nullish(),
});
const stateSchema = z.object({ state: z.string().optional() });

/** What a new sandbox is. */
export interface NewSandbox {
  readonly template: string;
  /** Milliseconds after which it ends by itself. */
  readonly timeoutMs: number;
  readonly metadata: Readonly<Record<string, string>>;
  readonly allowsInternet: boolean;
}

/** Whether a sandbox is there. */
export type SandboxState = "running" | "paused" | "gone";

/** Speaks the control API of a service. Every method throws a `ServiceProblem`, or the error of `fetch`. */
export class ControlClient {
  readonly address: ServiceAddress;
  readonly #options: E2BExecutorOptions;

  constructor(options: E2BExecutorOptions) {
    this.#options = options;
    this.address = serviceAddress(options);
  }

  /** Creates a sandbox. */
  async create(
    { template, timeoutMs, metadata, allowsInternet }: NewSandbox,
    signal: AbortSignal,
  ): Promise<SandboxAccess> {
    const answer = await this.#eitherVersion("/sandboxes", signal, creationMs, {
      templateID: template,
      timeout: seconds(timeoutMs),
      metadata,
      secure: true,
      autoPause: false,
      allow_internet_access: allowsInternet,
    });
    return sandboxAccess(this.address, sandboxSchema.parse(answer));
  }

  /** Finds a sandbox, and resumes it if it is paused. It then lives for so many milliseconds, or longer. */
  async connect(id: string, timeoutMs: number, signal: AbortSignal): Promise<SandboxAccess> {
    const answer = await this.#eitherVersion(`/sandboxes/${id}/connect`, signal, creationMs, {
      timeout: seconds(timeoutMs),
    });
    return sandboxAccess(this.address, sandboxSchema.parse(answer));
  }

  async state(id: string, signal: AbortSignal): Promise<SandboxState> {
    try {
      const { state } = stateSchema.parse(await this.#request("GET", `/sandboxes/${id}`, { signal }));
      return state === "paused" ? "paused" : "running";
    } catch (error) {
      if (isGone(error)) return "gone";
      throw error;
    }
  }

  /** Lets a sandbox live for so many milliseconds from now. */
  async setTimeout(id: string, timeoutMs: number, signal: AbortSignal): Promise<void> {
    await this.#request("POST", `/sandboxes/${id}/timeout`, { signal, body: { timeout: seconds(timeoutMs) } });
  }

  /** Pauses a sandbox with its programs: a service that would keep only its files must refuse that. */
  async pause(id: string, signal: AbortSignal): Promise<void> {
    await this.#request("POST", `/sandboxes/${id}/pause`, {
      signal,
      body: { memory: true },
      headers: { prefer: "handling=strict" },
      limitMs: creationMs,
    });
  }

  /** Ends a sandbox, if it is still there. */
  async kill(id: string, signal: AbortSignal): Promise<void> {
    await this.#request("DELETE", `/sandboxes/${id}`, { signal }).catch((error: unknown) => {
      if (!isGone(error)) throw error;
    });
  }

  /** Services are older or younger than the second version of these two requests. The bodies of both are understood. */
  async #eitherVersion(path: string, signal: AbortSignal, limitMs: number, body: JsonObject): Promise<unknown> {
    try {
      return await this.#request("POST", path, { signal, body, limitMs });
    } catch (error) {
      if (!isStatus(error, 404, 405)) throw error;
      return this.#request("POST", `/v2${path}`, { signal, body, limitMs }).catch((other: unknown) => {
        // It knows only the first one, and says why that does not work.
        throw isStatus(other, 404, 405) ? error : other;
      });
    }
  }

  async #request(
    method: string,
    path: string,
    {
      signal,
      body,
      headers,
      limitMs = answerMs,
    }: {
      readonly signal: AbortSignal;
      readonly body?: JsonObject;
      readonly headers?: Readonly<Record<string, string>>;
      readonly limitMs?: number;
    },
  ): Promise<unknown> {
    const limit = joinSignals(signal, AbortSignal.timeout(limitMs));
    for (let attempt = 0; ; attempt += 1) {
      try {
        const response = await fetch(`${withoutSlash(this.address.apiUrl)}${path}`, {
          method,
          headers: {
            ...headers,
            "x-api-key": apiKeyOf(this.#options),
            ...(body && { "content-type": "application/json" }),
          },
          ...(body && { body: JSON.stringify(body) }),
          // The key is for this address only.
          redirect: "error",
          signal: limit,
        });
        return await answerOf(response);
      } catch (error) {
        if (!isStatus(error, 429) || attempt >= mostRetries) throw error;
        await sleep(Math.min((error.retryAfter ?? 1) * 1000, longestWaitMs), undefined, { signal: limit });
      }
    }
  }
}

/** Whether the answer to a request for a sandbox says that there is none any more. */
export function isGone(error: unknown): boolean {
  return isStatus(error, 404);
}

function isStatus(error: unknown, ...statuses: readonly number[]): error is ServiceProblem {
  return error instanceof ServiceProblem && statuses.includes(error.status);
}

function seconds(milliseconds: number): number {
  return Math.ceil(milliseconds / 1000);
}
