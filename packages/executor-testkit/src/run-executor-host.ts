import { execFile } from "node:child_process";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import type { CodeExecutor, SubmittedRun } from "@fenced/core";
import type { CommonExecutorOptions } from "./common-executor-options.ts";
import { hostReportMark, hostRequestVariable, type HostReport, type HostRequest } from "./host-request.ts";

const goneWithinMs = 30_000;
/** A program that nobody kills ends by itself. */
const longestWaitMs = 600_000;

/**
 * The whole program that a subject's `hostCommand` starts: creates an executor, runs what the suite requests, and then
 * stops the executor, exits without stopping it, or is killed. It must be able to end by itself after `stop()`.
 *
 * @example
 * import { runExecutorHost } from "@fenced/executor-testkit";
 * import { MyExecutor } from "../../src/index.ts";
 *
 * await runExecutorHost((options) => new MyExecutor(options));
 */
export async function runExecutorHost(
  create: (options: CommonExecutorOptions) => CodeExecutor | Promise<CodeExecutor>,
): Promise<void> {
  const request = readRequest();
  // Not set earlier, because whatever loads this program may keep its own temporary files.
  for (const name of ["TMPDIR", "TMP", "TEMP"]) process.env[name] = request.temporary;
  const before = await childProcesses();

  const executor = await create(request.options);
  if (request.end === "wait") {
    await executor.start();
    report({ type: "started", handle: executor.handle });
  }
  for (const blocks of request.calls) {
    const { exitCode, output } = await executor.executeCodeBlocks(blocks);
    report({ type: "result", exitCode, output });
  }
  for (const { id, blocks } of request.submissions ?? []) {
    const run = await executor.submit(blocks, { id });
    report({ type: "submitted", id, uuid: run.uuid });
    void reportEvents(run);
  }
  if (request.end === "exit") process.exit(0);
  if (request.end === "wait") await sleep(longestWaitMs);
  if (request.end === "throw") throw new Error("deliberate: this host program dies of an error");
  await executor.stop();
  report({ type: "stopped", children: await childrenThatStay(before) });
}

async function reportEvents(run: SubmittedRun): Promise<void> {
  for await (const event of run.events()) report({ type: "event", id: run.id, ...event });
}

function readRequest(): HostRequest {
  const request: unknown = JSON.parse(process.env[hostRequestVariable] ?? "null");
  Reflect.deleteProperty(process.env, hostRequestVariable);
  if (isHostRequest(request)) return request;
  throw new Error(
    `The suite starts this program with a request in ${hostRequestVariable}; it does nothing on its own.`,
  );
}

function isHostRequest(value: unknown): value is HostRequest {
  return typeof value === "object" && value !== null && "calls" in value;
}

function report(message: HostReport): void {
  process.stdout.write(`${hostReportMark}${JSON.stringify(message)}\n`);
}

async function childrenThatStay(before: ReadonlyMap<number, string>): Promise<string[]> {
  const end = Date.now() + goneWithinMs;
  for (;;) {
    const now = await childProcesses();
    const added = [...now].filter(([pid]) => !before.has(pid)).map(([pid, command]) => `${pid} ${command}`);
    if (added.length === 0 || Date.now() > end) return added;
    await sleep(100);
  }
}

async function childProcesses(): Promise<Map<number, string>> {
  const children = new Map<number, string>();
  if (process.platform === "win32") return children;
  // Any process on the machine may have megabytes of arguments.
  const limit = { maxBuffer: 268_435_456 };
  const { stdout } = await promisify(execFile)("ps", ["-A", "-o", "pid=,ppid=,stat=,args="], limit);
  for (const line of stdout.split("\n")) {
    const [, pid, parent, state, command] = /^\s*(\d+)\s+(\d+)\s+(\S+)\s+(.*)$/.exec(line) ?? [];
    if (Number(parent) !== process.pid || command === undefined) continue;
    // `ps` is a child itself, and so is the esbuild service that loads TypeScript.
    if (state?.startsWith("Z") === true || /^ps |\besbuild\b/.test(command)) continue;
    children.set(Number(pid), command);
  }
  return children;
}
