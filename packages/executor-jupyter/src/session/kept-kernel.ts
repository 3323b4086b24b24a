import { setTimeout as sleep } from "node:timers/promises";
import { BackendUnavailableError } from "@fenced/core";
import { within } from "@fenced/core/abort";
import { PlaceGone } from "@fenced/executor-kit";
import { type SessionAccess, SessionLink } from "@fenced/executor-kit/supervisor";
import { field } from "../fields.ts";
import { KeptSocket } from "../kernel/kept-socket.ts";
import type { KernelLinkOptions } from "../kernel/kernel-link.ts";
import { openKernelStreams } from "../kernel/kernel-streams.ts";
import { Kernel } from "../kernel/kernel.ts";
import { PythonHelper, type HelperReport } from "../python/python-helper.ts";

/** Milliseconds for a block of an earlier program to end by itself, and then after it was interrupted. */
const [endingMs, interruptedMs] = [2000, 3000];
const lookMs = 50;
/** Milliseconds for a keeper to remove its files. */
const keeperEndMs = 30_000;

/** A kernel whose connection comes back by itself. */
export interface KeptKernel {
  readonly kernel: Kernel;
  readonly helper: PythonHelper;
  readonly link: SessionLink;
}

/**
 * Connects to a Python kernel with a keeper.
 *
 * @param access - `first` identifies the connection that leads to a new keeper. Default: the keeper has a program, or had one.
 * @throws SessionInUseError if another program uses it; PlaceGone if the kernel is gone or has no keeper.
 */
export async function connectKept(
  options: KernelLinkOptions,
  access: Pick<SessionAccess, "key" | "keepAliveMs"> & { readonly takeOver: boolean; readonly first?: string },
  signal: AbortSignal,
): Promise<KeptKernel> {
  const { client, kernelId } = options;
  const { first: name, ...given } = access;
  const connect = (limit: AbortSignal) => openKernelStreams(client, kernelId, limit);
  const first = name === undefined ? undefined : await openKernelStreams(client, kernelId, signal, name);
  const link = await SessionLink.open({ ...given, connect, signal, ...(first && { first }) });
  const kernel = await Kernel.over({ ...options, openSocket: (events) => new KeptSocket(link, events) }, "python");
  return { kernel, helper: PythonHelper.of(kernel), link };
}

/**
 * Ends what an earlier program was waiting for.
 *
 * @returns what the helper reported when the session began.
 * @throws PlaceGone if a block cannot be interrupted; BackendUnavailableError if the kernel does not answer.
 */
export async function adopt({ helper }: KeptKernel): Promise<HelperReport> {
  const adopted = await askHelper(helper);
  if (field(adopted, "busy") === true && !(await isIdle(helper, endingMs))) {
    await helper.demand("interrupt");
    const ended = (await isIdle(helper, interruptedMs)) && (await helper.demand("kill")) === true;
    if (!ended) throw new PlaceGone("the last program's block cannot be ended");
  }
  await helper.demand("settle");
  return PythonHelper.reportOf(field(adopted, "report"));
}

async function isIdle(helper: PythonHelper, withinMs: number): Promise<boolean> {
  const end = performance.now() + withinMs;
  while (performance.now() < end) {
    if (field(await askHelper(helper), "busy") !== true) return true;
    await sleep(lookMs);
  }
  return false;
}

async function askHelper(helper: PythonHelper): Promise<unknown> {
  const answer = await helper.demand("adopt");
  if (answer !== undefined) return answer;
  throw doesNotAnswer();
}

/** The error for a kernel that an earlier program has left and that is silent. */
export function doesNotAnswer(cause?: unknown): BackendUnavailableError {
  return new BackendUnavailableError("The session's kernel does not answer", {
    remedy: "It may be busy in native code: connect again later.",
    cause,
  });
}

/**
 * Ends a session whose kernel has died: its keeper, which has the files, is reached only by what runs on its machine.
 *
 * @param kernel - another one there.
 * @param socket - the keeper's.
 */
export async function endKeeper(kernel: Kernel, socket: string): Promise<void> {
  const code = `
import socket
with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
    connection.settimeout(20)
    connection.connect("\\0" + ${JSON.stringify(socket)})
    connection.sendall(b"over")
    connection.recv(1)
`;
  await within(keeperEndMs, kernel.execute({ code }).finished);
}
