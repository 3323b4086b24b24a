import { createHash, randomUUID } from "node:crypto";
import fs from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { joinSignals } from "@fenced/core/abort";
import type { WasmPackages } from "./package-options.ts";

const mostRedirects = 5;
/** Maximum size of a page of the index, and of a file. */
const [mostPageBytes, mostFileBytes] = [33_554_432, 268_435_456];
/** Limits for one installation. */
const [mostRequests, mostBytes] = [2000, 1_073_741_824];
/** Milliseconds in which the index must send the next bytes. */
const silenceMs = 30_000;
const pageTypes = "application/vnd.pypi.simple.v1+json, application/vnd.pypi.simple.v1+html;q=0.2, text/html;q=0.1";
const redirects = new Set([301, 302, 303, 307, 308]);

/** A file that was fetched: an open descriptor, without a name on the disk. */
export interface Fetched {
  readonly descriptor: number;
  readonly size: number;
  readonly sha256: string;
  /** Its address after redirects, and the content type that the server reports. */
  readonly url: string;
  readonly type: string;
}

/** The index did not deliver what was requested; the message is a sentence for the caller. */
export class IndexError extends Error {}

/** Fetches from a package index, and from nowhere else, within limits. One for each installation. */
export class PackageIndex {
  readonly #pages: string;
  readonly #origins: ReadonlySet<string>;
  readonly #signal: AbortSignal;
  #requests = 0;
  #bytes = 0;

  constructor({ index = "", fileOrigins }: WasmPackages, signal: AbortSignal) {
    this.#pages = index.endsWith("/") ? index : `${index}/`;
    const { origin } = new URL(index);
    const others = fileOrigins ?? (origin === "https://pypi.org" ? ["https://files.pythonhosted.org"] : []);
    this.#origins = new Set([origin, ...others]);
    this.#signal = signal;
  }

  /**
   * The page of a package; `undefined` if the index does not have it.
   *
   * @throws IndexError
   */
  async page(name: string): Promise<Fetched | undefined> {
    return this.#fetch(`${this.#pages}${name}/`, mostPageBytes);
  }

  /**
   * A file that a page names.
   *
   * @throws IndexError also if it is not the file that the page promised.
   */
  async file(url: string, sha256: string): Promise<Fetched> {
    const fetched = await this.#fetch(url, mostFileBytes);
    if (fetched?.sha256 === sha256) return fetched;
    if (!fetched) throw new IndexError(`The index does not have ${url}, although its page names it.`);
    fs.closeSync(fetched.descriptor);
    throw new IndexError(`${url} is not the file that the index promised: its SHA-256 is ${fetched.sha256}.`);
  }

  async #fetch(first: string, most: number): Promise<Fetched | undefined> {
    const watch = new AbortController();
    const timer = setTimeout(() => watch.abort(), silenceMs);
    const signal = joinSignals(this.#signal, watch.signal);
    try {
      const response = await this.#follow(first, signal);
      if (response.status === 404) return undefined;
      if (!response.ok) throw new IndexError(`The index answered ${response.status} to ${first}.`);
      const content = await this.#store(response, most, () => timer.refresh());
      return { ...content, url: response.url, type: response.headers.get("content-type") ?? "" };
    } catch (error) {
      this.#signal.throwIfAborted();
      if (error instanceof IndexError) throw error;
      const reason = watch.signal.aborted ? `no data arrived for ${silenceMs / 1000} seconds` : reasonOf(error);
      throw new IndexError(`${first} could not be fetched: ${reason}.`, { cause: error });
    } finally {
      clearTimeout(timer);
      watch.abort();
    }
  }

  async #follow(first: string, signal: AbortSignal): Promise<Response> {
    let url = first;
    for (let count = 0; count <= mostRedirects; count += 1) {
      this.#requests += 1;
      if (this.#requests > mostRequests) {
        throw new IndexError(`The installation needs more than ${mostRequests} requests.`);
      }
      this.#check(url);
      const headers = { accept: pageTypes, "user-agent": "fenced" };
      const response = await fetch(url, { redirect: "manual", signal, headers });
      const next = response.headers.get("location");
      if (!redirects.has(response.status) || next === null) return response;
      await response.body?.cancel();
      url = new URL(next, url).href;
    }
    throw new IndexError(`The index redirects ${first} more than ${mostRedirects} times.`);
  }

  #check(url: string): void {
    const { origin, username, password } = URL.canParse(url)
      ? new URL(url)
      : { origin: "null", username: "", password: "" };
    if (this.#origins.has(origin) && username === "" && password === "") return;
    throw new IndexError(
      `The index links to ${url.slice(0, 1000)}, which is not on ${[...this.#origins].join(" or ")}. ` +
        `If you trust it, add its origin to \`fileOrigins\`.`,
    );
  }

  async #store(
    { body }: Response,
    most: number,
    alive: () => void,
  ): Promise<Pick<Fetched, "descriptor" | "size" | "sha256">> {
    const hash = createHash("sha256");
    const descriptor = openUnnamed();
    let size = 0;
    try {
      const chunks: AsyncIterable<Uint8Array> | [] = body ?? [];
      for await (const chunk of chunks) {
        alive();
        size += chunk.length;
        this.#bytes += chunk.length;
        if (size > most) throw new IndexError(`The index sent a file of more than ${most / 2 ** 20} MiB.`);
        if (this.#bytes > mostBytes) {
          throw new IndexError(`The installation downloads more than ${mostBytes / 2 ** 20} MiB.`);
        }
        hash.update(chunk);
        fs.writeFileSync(descriptor, chunk);
      }
      return { descriptor, size, sha256: hash.digest("hex") };
    } catch (error) {
      fs.closeSync(descriptor);
      throw error;
    }
  }
}

/** An unnamed temporary file. */
function openUnnamed(): number {
  const file = path.join(tmpdir(), `fenced-fetched-${randomUUID()}`);
  const descriptor = fs.openSync(file, "wx+", 0o600);
  fs.rmSync(file);
  return descriptor;
}

function reasonOf(error: unknown): string {
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
  return cause instanceof Error ? cause.message : String(cause);
}
