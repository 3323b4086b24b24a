import { spawn, type ChildProcessByStdio } from "node:child_process";
import { randomInt, randomUUID } from "node:crypto";
import { once } from "node:events";
import { readdir, readFile, stat } from "node:fs/promises";
import type { Readable, Writable } from "node:stream";
import { needs } from "@fenced/test-support";
import { describe, expect, it } from "vitest";
import { supervisorFor } from "../src/remote/remote-program.ts";

/** Starts the program on this machine. */
function supervisor(silenceSeconds: number): ChildProcessByStdio<Writable, Readable, null> {
  const { command, text } = supervisorFor({
    id: randomUUID(),
    nonce: "nonce",
    workDir: undefined,
    filePrefix: ".fenced-test-",
    keepFiles: false,
    functionsModule: "functions",
    owner: "owner",
    functionsMarker: ".fenced-functions",
    programs: ["sh"],
    path: undefined,
    silenceSeconds,
  });
  const child = spawn("sh", ["-c", command], { stdio: ["pipe", "pipe", "inherit"] });
  child.stdin.write(text);
  return child;
}

/** How many processes sleep for that long. */
async function sleepers(seconds: number): Promise<number> {
  const processes = (await readdir("/proc")).filter((name) => /^\d+$/.test(name));
  const commands = processes.map((pid) => readFile(`/proc/${pid}/cmdline`, "latin1").catch(() => ""));
  return (await Promise.all(commands)).filter((command) => command === `sleep\0${seconds}\0`).length;
}

describe("the program on the remote host", needs("bash"), () => {
  it("ends, and removes its directory, when this side is silent", async () => {
    const child = supervisor(1);
    const ended = once(child, "exit");
    let said = "";
    child.stdout.setEncoding("utf8").on("data", (text: string) => {
      said += text;
    });
    // Its standard input stays open, so only the silence tells.
    await ended;
    const directory = /^dir (.*)$/m.exec(said)?.[1] ?? "";
    expect(directory).toMatch(/fenced-remote-\w+$/);
    await expect.poll(() => stat(directory).catch(() => "gone"), { timeout: 10_000 }).toBe("gone");
    child.stdin.destroy();
  });

  it("then also ends a supervisor of blocks whose variables cannot be read", needs("python3"), async () => {
    const code =
      "import ctypes, time\nctypes.CDLL(None).prctl(4, 0, 0, 0, 0)\nprint('hidden', flush=True)\ntime.sleep(300)";
    const hidden = spawn("python3", ["-c", code], { stdio: ["ignore", "pipe", "inherit"], detached: true });
    const died = once(hidden, "exit");
    await once(hidden.stdout, "data");
    const child = supervisor(1);
    child.stdin.write(`leader supervisor1 ${hidden.pid}\n`);
    child.stdout.resume();
    expect(await died).toEqual([null, "SIGKILL"]);
    child.stdin.destroy();
  });

  it("leaves nothing behind, however soon it ends", { timeout: 120_000 }, async () => {
    const seconds = randomInt(1_000_000, 9_000_000);
    for (let round = 0; round < 20; round += 1) {
      const children = Array.from({ length: 5 }, () => supervisor(seconds));
      const ended = children.map((child) => once(child, "exit"));
      for (const { stdin, stdout } of children) {
        stdout.resume();
        stdin.end();
      }
      await Promise.all(ended);
    }
    await expect.poll(() => sleepers(seconds), { timeout: 10_000 }).toBe(0);
  });
});
