import { execFile, spawn, type ChildProcessByStdio } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Readable, Writable } from "node:stream";
import { text as textOf } from "node:stream/consumers";
import { promisify } from "node:util";
import { needs } from "@fenced/test-support";
import { describe, expect, it, onTestFinished } from "vitest";
import { remoteProgram, type RemoteSession } from "../src/remote/remote-program.ts";
import { temporaryDirectory } from "./support/temporary-directory.ts";

/** Starts the programs of the remote host on this machine. */
async function started(settings: Partial<RemoteSession> = {}): Promise<{
  readonly child: ChildProcessByStdio<Writable, Readable, null>;
  readonly temporary: string;
}> {
  const temporary = await temporaryDirectory();
  const { command, text } = remoteProgram({
    greeting: "greeting",
    id: randomUUID(),
    workDir: undefined,
    filePrefix: ".fenced-test-",
    keepFiles: false,
    functionsModule: "functions",
    owner: "owner",
    path: undefined,
    silenceSeconds: 600,
    programs: ["sh"],
    ...settings,
  });
  const env = { ...process.env, TMPDIR: temporary };
  const child = spawn("sh", ["-c", command], { env, stdio: ["pipe", "pipe", "inherit"] });
  onTestFinished(() => void child.stdin.destroy());
  child.stdin.write(text);
  return { child, temporary };
}

describe("the programs on the remote host", needs("python3"), () => {
  it("end, and remove their directory, when this side is silent", async () => {
    const { child, temporary } = await started({ silenceSeconds: 1 });
    child.stdout.resume();
    // Its standard input stays open, so only the silence tells.
    await once(child, "exit");
    expect(await readdir(temporary)).toEqual([]);
  });

  it("leave nothing behind, however soon this side ends", { timeout: 120_000 }, async () => {
    for (let round = 0; round < 10; round += 1) {
      const { child, temporary } = await started();
      child.stdout.resume();
      setTimeout(() => child.stdin.end(), round * 15);
      await once(child, "exit");
      expect(await readdir(temporary)).toEqual([]);
    }
  });

  it("leave nothing behind, and say why, if the supervisor cannot be started", async () => {
    const programs = await temporaryDirectory();
    const { stdout } = await promisify(execFile)("python3", ["-c", "import sys; print(sys.executable)"]);
    // Enough descriptors for the work directory, but not for the supervisor's socket.
    const limited = `#!/bin/sh\nulimit -n 5\nexec ${stdout.trim()} "$@"\n`;
    await writeFile(join(programs, "python3"), limited, { mode: 0o755 });
    const { child, temporary } = await started({ path: programs });
    const said = await textOf(child.stdout);
    const [, problem = ""] = /^problem ([0-9a-f]+)$/m.exec(said) ?? [];
    expect(Buffer.from(problem, "hex").toString()).toMatch(
      /^the supervisor could not be started: .*Too many open files/,
    );
    expect(await readdir(temporary)).toEqual([]);
  });
});
