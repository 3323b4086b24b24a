import { setTimeout as sleep } from "node:timers/promises";
import { BackendUnavailableError, InvalidInputError } from "@fenced/core";
import { lateSignal } from "@fenced/core/abort";
import { field, textField } from "../fields.ts";
import type { ServerClient } from "../servers/server-client.ts";

/** What a server reports about a kernel. */
export interface KernelModel {
  readonly id: string;
  /** `idle`, `busy`, `starting`, `restarting`, `dead`; empty if the server does not say. */
  readonly executionState: string;
  /** How many WebSockets are connected to it; `undefined` if the server does not say. */
  readonly connections: number | undefined;
}

/** Milliseconds to start a kernel, which may involve starting a pod on a cluster. */
const startDeadlineMs = 120_000;
const endDeadlineMs = 15_000;
/** How often a server may fail to end a kernel, and milliseconds before it is asked again. */
const [endFailures, endAgainMs] = [10, 300];
/** Milliseconds to wait for the start of a kernel that is no longer wanted: without its id, nothing can end it. */
const unwantedMs = 15_000;

/**
 * Starts a kernel. If the signal aborts during the start, the kernel is still returned, for the caller to end.
 *
 * @param path - its working directory, below the server's root directory; `undefined`: the root directory.
 * @throws InvalidInputError if the server has no kernel of this name; the message lists the names that it has.
 */
export async function startKernel(
  client: ServerClient,
  { name, path, signal }: { readonly name: string; readonly path: string | undefined; readonly signal: AbortSignal },
): Promise<KernelModel> {
  signal.throwIfAborted();
  using late = lateSignal(signal, unwantedMs);
  const request = { json: { name, path }, deadlineMs: startDeadlineMs, signal: late.signal };
  const response = await client.send("api/kernels", { method: "POST", ...request });
  if (response.ok) {
    const model = kernelModel(await client.receivedJson(response));
    if (model) return model;
    throw new BackendUnavailableError(`The server at ${client.address.baseUrl} is not a Jupyter server`, {
      remedy: "Check the address and its path prefix.",
    });
  }
  const refusal = await client.refusal("api/kernels", response);
  const names = await kernelNames(client).catch(() => undefined);
  if (names === undefined || names.includes(name)) throw refusal;
  throw new InvalidInputError(`The Jupyter server has no kernel named ${JSON.stringify(name)}`, {
    remedy: `Set \`kernelName\` to one that is installed there: ${names.slice(0, 50).join(", ").slice(0, 2000) || "there is none"}.`,
    cause: refusal,
  });
}

/** The kernel, or `undefined` if the server has none with this id. */
export async function findKernel(
  client: ServerClient,
  id: string,
  deadlineMs: number,
): Promise<KernelModel | undefined> {
  const path = kernelPath(id);
  const response = await client.send(path, { deadlineMs });
  if (response.ok) return kernelModel(await client.receivedJson(response));
  if (response.status !== 404) throw await client.refusal(path, response);
  await response.body?.cancel();
  return undefined;
}

/** Ends a kernel; does nothing if it is already gone. */
export async function deleteKernel(client: ServerClient, id: string): Promise<void> {
  const path = kernelPath(id);
  for (let failures = 0; ; failures += 1) {
    const response = await client.send(path, { method: "DELETE", deadlineMs: endDeadlineMs });
    if (response.ok || response.status === 404) {
      await response.body?.cancel();
      return;
    }
    const refusal = await client.refusal(path, response);
    // While jupyter_client starts a kernel again that has died, it answers 500 and keeps the kernel.
    if (response.status < 500 || failures === endFailures) throw refusal;
    await sleep(endAgainMs);
  }
}

/** Restarts a kernel, which keeps its id. */
export async function restartKernel(client: ServerClient, id: string): Promise<void> {
  await client.json(`${kernelPath(id)}/restart`, { method: "POST", json: {}, deadlineMs: startDeadlineMs });
}

/** The language of an installed kernel, in lower case; `undefined` if there is none of this name. */
export async function kernelLanguage(client: ServerClient, name: string): Promise<string | undefined> {
  const spec = field(field(await kernelSpecs(client), name), "spec");
  return spec === undefined ? undefined : textField(spec, "language").toLowerCase();
}

async function kernelNames(client: ServerClient): Promise<string[]> {
  const specs = await kernelSpecs(client);
  return typeof specs === "object" && specs !== null ? Object.keys(specs) : [];
}

async function kernelSpecs(client: ServerClient): Promise<unknown> {
  return field(await client.json("api/kernelspecs"), "kernelspecs");
}

/** The address of a kernel, relative to the server's. */
export function kernelPath(id: string): string {
  return `api/kernels/${encodeURIComponent(id)}`;
}

/** The address of a WebSocket to a kernel's channels. @param session - identifies it to the server. */
export function channelsPath(id: string, session: string): string {
  return `${kernelPath(id)}/channels?session_id=${session}`;
}

function kernelModel(value: unknown): KernelModel | undefined {
  const id = textField(value, "id");
  const executionState = textField(value, "execution_state");
  const connections = field(value, "connections");
  return id === ""
    ? undefined
    : { id, executionState, connections: typeof connections === "number" ? connections : undefined };
}
