import { spawn, type ChildProcessWithoutNullStreams } from "node:child_process";
import { once } from "node:events";
import { createServer, type Socket } from "node:net";
import { programArguments } from "@fenced/test-support/program-arguments";
import { onTestFinished } from "vitest";

const withoutPackages = new URL("fixtures/without-packages.mjs", import.meta.url).href;

/** A running program. */
export interface Started {
  readonly child: ChildProcessWithoutNullStreams;
  readonly outcome: Promise<{ readonly exitCode: number | null; readonly stdout: string; readonly stderr: string }>;
  /** Waits until standard output contains the text. */
  readonly said: (text: string) => Promise<void>;
}

/**
 * Runs a program of this package's sources or tests in Node, without a terminal.
 *
 * @param uid - of a user without a name, who has no home directory either. Default: this process's user.
 */
export function runNode(
  file: string,
  args: readonly string[],
  env: Readonly<Record<string, string>>,
  stdin = "",
  uid?: number,
): Started {
  const { DOCKER_HOST: _host, HOME: home, ...inherited } = process.env;
  const words = [...programArguments(new URL(file, import.meta.url), withoutPackages), ...args];
  const child = spawn(process.execPath, words, {
    env: { ...inherited, ...(uid === undefined && home !== undefined && { HOME: home }), ...env },
    ...(uid !== undefined && { uid, gid: uid }),
  });
  onTestFinished(() => void child.kill("SIGKILL"));
  child.stdin.on("error", () => {}).end(stdin);
  const texts = { stdout: "", stderr: "" };
  for (const name of ["stdout", "stderr"] as const) {
    child[name].setEncoding("utf8").on("data", (text: string) => (texts[name] += text));
  }
  const outcome = once(child, "close").then(([exitCode]: (number | null)[]) => ({
    exitCode: exitCode ?? null,
    ...texts,
  }));
  const said = async (text: string): Promise<void> => {
    while (!texts.stdout.includes(text)) await once(child.stdout, "data");
  };
  return { child, outcome, said };
}

/** A server that accepts connections and never sends anything. */
export async function silentServer(): Promise<{ readonly port: number; readonly connected: Promise<void> }> {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => sockets.add(socket.on("error", () => {})));
  const connected = once(server, "connection").then(() => {});
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("the server has no port");
  return { port: address.port, connected };
}
