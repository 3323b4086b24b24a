import { isLiveInput, timeIsUp, type BlockEvent, type BlockOutcome, type ProgramRun } from "@fenced/executor-kit";
import { connectionError } from "../connection/ssh-error.ts";
import { refusal } from "../files/ssh-file-access.ts";
import type { SshLink } from "../ssh-link.ts";
import type { Content, RemoteCall } from "./remote-call.ts";

/** A block, or a program that runs alongside blocks, for the remote host. */
export interface RemoteBlock {
  readonly host: string;
  /** The program and its arguments; the path of the source is added at the end, if there is one. */
  readonly command: readonly string[];
  /** The source of a block. */
  readonly source?: RemoteSource;
  readonly number: number;
  readonly env: Readonly<Record<string, string>>;
  readonly stdin?: ProgramRun["stdin"];
  readonly signal: AbortSignal;
}

/** The source of a block, which is stored there. */
interface RemoteSource {
  /** Where, relative to the work directory. */
  readonly file: string;
  readonly content: string;
  /** Remove the file when the block has ended. */
  readonly temporary: boolean;
}

/**
 * Runs a block on the remote host, and returns how it ended. Secrets in `env` travel over the connection and never
 * appear in a command line on either host.
 *
 * @throws BackendUnavailableError if the connection broke or the block could not be started.
 */
export async function* runRemoteBlock(
  link: SshLink,
  block: RemoteBlock,
): AsyncGenerator<BlockEvent, BlockOutcome, void> {
  const { signal, source } = block;
  signal.throwIfAborted();
  const name = `block${block.number}`;
  const call = link.call({ name, words: wordsOf(block, name) });
  const kill = (): void => {
    // The program finished in time and only its reader is slow, so what it left running stays alive.
    if (call.endedAt !== undefined && signal.reason === timeIsUp) return;
    void endCall(link, call, name);
  };
  signal.addEventListener("abort", kill, { once: true });
  void call.send(...contentsOf(block));
  try {
    const end = yield* call.events();
    if (end.type === "exit") {
      return { exitCode: end.code, ...(call.endedAt === undefined ? {} : { endedAt: call.endedAt }) };
    }
    if (end.type === "refused") throw refusal(end, source?.file ?? ".");
    if (signal.aborted) return { exitCode: killed };
    // Either the connection broke, and this throws, or code killed the program that watches it, and the rest must die
    // too.
    await link.connection.kill(name);
    if (end.begun) return { exitCode: killed };
    throw connectionError(`The block could not be started on ${block.host}`, block.host, end.said);
  } finally {
    signal.removeEventListener("abort", kill);
  }
}

const killed = 137;

function contentsOf({ source, stdin }: RemoteBlock): Content[] {
  const contents: Content[] = source ? [[Buffer.from(source.content)]] : [];
  if (stdin !== undefined) contents.push(isLiveInput(stdin) ? { live: stdin } : [Buffer.from(stdin)]);
  return contents;
}

async function endCall(link: SshLink, call: RemoteCall, name: string): Promise<void> {
  try {
    await link.connection.kill(name);
    await call.leave();
  } catch (error) {
    call.fail(error);
  }
}

function wordsOf({ source, stdin, command, env }: RemoteBlock, name: string): string[] {
  const variables = Object.entries(env).map(([variable, value]) => `${variable}=${value}`);
  const how = [
    source?.temporary === true ? "remove" : "keep",
    source?.file ?? "",
    stdin === undefined ? "none" : isLiveInput(stdin) ? "live" : "input",
  ];
  return ["block", name, ...how, String(command.length), ...command, ...variables];
}
