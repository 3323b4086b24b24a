import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { backend, needs } from "../index.ts";

const script = join(import.meta.dirname, "../../scripts/ci/leaks.sh");
let directory = "";
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "fenced-test-"));
});
afterEach(async () => {
  await rm(directory, { recursive: true });
});

/** The script's output and exit code, in a temporary directory of its own. */
async function leaks(...words: readonly string[]): Promise<{ readonly stdout: string; readonly code: number }> {
  const env = { ...process.env, TMPDIR: directory };
  return new Promise((resolve) => {
    const child = execFile(script, words, { env }, (_, stdout) => {
      resolve({ stdout, code: child.exitCode ?? -1 });
    });
  });
}

const onLinux = { ...needs("bash"), ...(process.platform === "linux" ? {} : { skip: true }) };
describe("leaks.sh", onLinux, () => {
  it("reports a new process, temporary directory, volume and network", async () => {
    const before = join(directory, "before");
    await writeFile(before, (await leaks("list")).stdout);
    const child = spawn("sleep", ["1000"], { env: { ...process.env, FENCED_SESSION: "left" } });
    const name = `fenced-test-${process.pid}-left`;
    const engines = (["docker", "podman"] as const).filter((engine) => backend(engine).available);
    try {
      await mkdir(join(directory, "fenced-left"));
      for (const engine of engines) for (const kind of ["volume", "network"]) await run(engine, kind, "create", name);
      const { stdout, code } = await leaks("check", before, "0");
      expect(code).toBe(1);
      expect(stdout).toMatch(new RegExp(`^process ${child.pid}: sleep 1000`, "m"));
      expect(stdout).toContain(`temporary ${join(directory, "fenced-left")}\n`);
      for (const engine of engines) {
        expect(stdout).toContain(`${engine} volume ${name}\n`);
        expect(stdout).toContain(`${engine} network ${name}\n`);
      }
    } finally {
      child.kill();
      await once(child, "exit");
      for (const engine of engines) for (const kind of ["volume", "network"]) await run(engine, kind, "rm", name);
    }
  });

  it("does not report what was there before", async () => {
    const before = join(directory, "before");
    await mkdir(join(directory, "fenced-old"));
    // Other tests run at the same time: whatever they have now counts as old.
    await writeFile(before, (await leaks("list")).stdout);
    const { stdout } = await leaks("check", before, "0");
    expect(stdout).not.toContain("fenced-old");
  });
});

async function run(...[program, ...words]: [string, ...string[]]): Promise<void> {
  await promisify(execFile)(program, words);
}
