import { timeIsUp, type BlockEvent, type BlockOutcome } from "@fenced/executor-kit";
import { connectionError } from "../connection/ssh-error.ts";
import { finish, refusal } from "../files/ssh-file-access.ts";
import { quoted } from "../remote/shell-words.ts";
import type { SshSession } from "../ssh-session.ts";
import type { RemoteCall } from "./remote-call.ts";

/** A block, as the remote host is told to run it. */
export interface RemoteBlock {
  readonly host: string;
  /** The program and its arguments; the file is added at the end. */
  readonly command: readonly string[];
  /** Where the source goes, relative to the work directory. */
  readonly file: string;
  /** Remove the file when the block has ended. */
  readonly temporary: boolean;
  readonly number: number;
  readonly source: string;
  readonly env: Readonly<Record<string, string>>;
  readonly stdin?: string;
  readonly signal: AbortSignal;
}

/**
 * Runs a block on the remote host, and returns how it ended. What is secret in `env` travels over the connection and
 * never stands in a command line, neither here nor there.
 *
 * @throws BackendUnavailableError if the connection broke or the block could not be started.
 */
export async function* runRemoteBlock(
  session: SshSession,
  block: RemoteBlock,
): AsyncGenerator<BlockEvent, BlockOutcome, void> {
  const { number, signal } = block;
  const input = await storeInput(session, block);
  signal.throwIfAborted();
  const call = session.call(`${environment(block.env)}; ${words(block, input)}`);
  const kill = (): void => {
    // It was in time, only its reader is slow; what it left running lives on.
    if (call.endedAt !== undefined && signal.reason === timeIsUp) return;
    void endCall(session, call, number);
  };
  signal.addEventListener("abort", kill, { once: true });
  call.stdin.end(block.source);
  try {
    const end = yield* call.events();
    if (end.type === "exit") {
      return { exitCode: end.code, ...(call.endedAt === undefined ? {} : { endedAt: call.endedAt }) };
    }
    if (end.type === "refused") throw refusal(end, block.file);
    if (signal.aborted) return { exitCode: killed };
    // Either the connection broke, and this throws, or code killed the program that watches it: the rest dies with that.
    await session.connection.kill(number);
    if (end.begun) return { exitCode: killed };
    throw connectionError(`The block could not be started on ${block.host}`, block.host, end.said);
  } finally {
    signal.removeEventListener("abort", kill);
  }
}

const killed = 137;

async function endCall(session: SshSession, call: RemoteCall, number: number): Promise<void> {
  try {
    await session.connection.kill(number);
    await call.leave();
  } catch (error) {
    call.fail(error);
  }
}

async function storeInput(session: SshSession, block: RemoteBlock): Promise<string> {
  const { number, stdin, host, file, signal } = block;
  if (stdin === undefined) return "/dev/null";
  const call = session.call(`input ${number}`);
  // Earlier blocks may have put something in its place that takes nothing.
  const leave = (): void => call.fail(signal.reason);
  signal.addEventListener("abort", leave, { once: true });
  if (signal.aborted) leave();
  try {
    call.stdin.end(stdin);
    await finish(call, file, host);
  } finally {
    signal.removeEventListener("abort", leave);
  }
  return `${session.directory}/input/${number}`;
}

function environment(env: Readonly<Record<string, string>>): string {
  const exports = Object.entries(env).map(([name, value]) => `export ${name}=${quoted(value)}`);
  return `environment() { ${[":", ...exports].join("; ")}; }`;
}

function words({ number, temporary, file, command }: RemoteBlock, input: string): string {
  const all = [String(number), temporary ? "remove" : "keep", file, input, ...command];
  return `block ${all.map(quoted).join(" ")}`;
}
