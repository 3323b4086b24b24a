import { spawn } from "node:child_process";
import { once } from "node:events";
import { connect, createServer as createNetServer, type Socket } from "node:net";
import type { NetworkDecision } from "@fenced/core";
import { portOf } from "@fenced/test-support/loopback-hosts";
import { onTestFinished } from "vitest";
import { EgressProxy, type EgressProxyOptions } from "../../src/index.ts";

/** A proxy for the duration of the test, with its decisions. */
export interface TestProxy {
  readonly proxy: EgressProxy;
  readonly url: string;
  readonly socksUrl: string;
  readonly port: number;
  readonly decisions: NetworkDecision[];
  /** The names that were looked up, in order. */
  readonly lookups: string[];
  /** A connection that needs no password, like one from a sandbox. */
  readonly connect: () => Promise<Socket>;
}

/** Every name resolves to 127.0.0.1, unless the options say otherwise. */
export async function startProxy(options: EgressProxyOptions): Promise<TestProxy> {
  const decisions: NetworkDecision[] = [];
  const lookups: string[] = [];
  const resolve = options.resolve ?? (() => Promise.resolve(["127.0.0.1"]));
  const proxy = new EgressProxy({
    ...options,
    onRequest: (decision) => decisions.push(decision),
    resolve: (host, signal) => {
      lookups.push(host);
      return resolve(host, signal);
    },
  });
  onTestFinished(() => proxy.close());
  const door = await portOf(createNetServer({ allowHalfOpen: true }, (socket) => proxy.handle(socket)));
  const open = async (): Promise<Socket> => {
    const socket = connect({ port: door, host: "127.0.0.1", allowHalfOpen: true });
    onTestFinished(() => void socket.destroy());
    await once(socket, "connect");
    return socket;
  };
  return { proxy, ...(await proxy.listen()), decisions, lookups, connect: open };
}

/**
 * Sends bytes to the proxy, and returns everything that it answers until it ends.
 *
 * @param options - `half`: say that nothing follows, as a client that is not going to complete its request.
 */
export async function exchange(
  { connect: open }: TestProxy,
  bytes: string | Buffer,
  options: { readonly half?: boolean } = {},
): Promise<string> {
  const socket = await open();
  socket.write(bytes);
  if (options.half === true) socket.end();
  return everything(socket);
}

/** Everything received until the other side ends or breaks the connection. */
export async function everything(socket: Socket): Promise<string> {
  const chunks: Buffer[] = [];
  socket.on("data", (chunk: Buffer) => chunks.push(chunk));
  await new Promise<void>((resolve) => {
    socket.once("end", resolve);
    socket.once("error", () => resolve());
    socket.once("close", () => resolve());
    socket.resume();
  });
  socket.destroy();
  return Buffer.concat(chunks).toString("latin1");
}

/** A plain request for a target, which is sent exactly as given. */
export function get(target: string, headers = ""): string {
  return `GET ${target} HTTP/1.1\r\nHost: any\r\n${headers}Connection: close\r\n\r\n`;
}

/** Runs a program to its end. */
export async function run(
  command: string,
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<{ code: number | null; output: string }> {
  const child = spawn(command, args, {
    env: { PATH: process.env.PATH ?? "", HOME: process.env.HOME ?? "", ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let output = "";
  child.stdout.on("data", (chunk: Buffer) => (output += chunk.toString()));
  child.stderr.on("data", (chunk: Buffer) => (output += chunk.toString()));
  const [code] = (await once(child, "close")) as [number | null];
  return { code, output };
}
