/**
 * Measures a host function call through files in the workspace, which backends without their own connections use, against a bare
 * exchange of two files between a program and this one, both of which check every millisecond.
 */
// needs: python3
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { LocalCommandLineCodeExecutor } from "@fenced/executor-local";
import { rawFilesCode, reportCalls, wait } from "./support/host-calls.ts";

/** The local executor, reduced to running code and moving files. */
class ByFiles extends LocalCommandLineCodeExecutor {
  protected override async openSession(signal: AbortSignal): ReturnType<LocalCommandLineCodeExecutor["openSession"]> {
    return Object.defineProperty(await super.openSession(signal), "openHostCalls", { value: undefined });
  }
}

const directory = await mkdtemp(join(tmpdir(), "fenced-bench-"));
await using executor = new ByFiles({ functions: [wait], maxHostCalls: 1000 });
await executor.start();

async function raw(): Promise<number> {
  const child = spawn("python3", ["-c", rawFilesCode, directory], { stdio: ["ignore", "pipe", "inherit"] });
  let printed = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    printed += text;
  });
  const ended = once(child, "close");
  for (let number = 0; number < 200; number += 1) {
    while (!existsSync(join(directory, `q${number}`))) await sleep(1);
    rmSync(join(directory, `q${number}`));
    writeFileSync(join(directory, "answer~"), "1");
    renameSync(join(directory, "answer~"), join(directory, `a${number}`));
  }
  await ended;
  return Number(printed);
}

try {
  await reportCalls("Host functions through files", { executor, raw, goal: "", sideBySide: "" });
} finally {
  await rm(directory, { recursive: true });
}
