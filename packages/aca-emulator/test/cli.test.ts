import { spawn } from "node:child_process";
import { randomInt } from "node:crypto";
import { once } from "node:events";
import { readdirSync, readFileSync } from "node:fs";
import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { needs } from "@fenced/test-support";
import { bundledCommand } from "@fenced/test-support/bundled-command";
import { describe, expect, it, onTestFinished } from "vitest";
import { current } from "./client.ts";

const [program, ...words] = await bundledCommand(join(import.meta.dirname, "../src/cli.ts"));

describe.skipIf(process.platform !== "linux")("the command", needs("python3"), () => {
  it.for(["SIGTERM", "SIGINT", "SIGKILL"] as const)(
    "serves requests, and leaves nothing behind after %s",
    { timeout: 120_000 },
    async (signal) => {
      // A directory of its own: other tests' emulators have theirs beside each other.
      const directory = await mkdtemp(join(tmpdir(), "emulator-command-"));
      onTestFinished(() => rm(directory, { recursive: true, force: true }));
      const child = spawn(program, [...words, "--port", "0", "--python", "python3"], {
        stdio: ["ignore", "pipe", "inherit"],
        env: { ...process.env, TMPDIR: directory },
      });
      onTestFinished(() => void child.kill("SIGKILL"));
      const said = new Map<string, string>();
      for await (const line of createInterface({ input: child.stdout })) {
        const [word = "", value = ""] = line.split(" ");
        said.set(word, value);
        if (said.has("token")) break;
      }
      // Even without an environment, a process can be recognized by its arguments, in any namespace.
      const seconds = String(randomInt(1_000_000, 9_000_000));
      const code = `import subprocess; subprocess.Popen(["sleep", "${seconds}"], start_new_session=True, env={}) and None`;
      const response = await fetch(
        `${said.get("endpoint") ?? ""}/executions?api-version=${current}&identifier=session-1`,
        {
          method: "POST",
          headers: { authorization: `Bearer ${said.get("token") ?? ""}` },
          body: JSON.stringify({ codeInputType: "Inline", executionType: "Synchronous", code }),
        },
      );
      expect([response.status, await response.json()]).toMatchObject([200, { status: "Succeeded" }]);
      // Its arguments appear in /proc a moment after it starts.
      await expect.poll(() => processes(seconds)).toHaveLength(1);

      child.kill(signal);
      await once(child, "exit");
      while (processes(seconds).length > 0 || (await left(directory)).length > 0) await sleep(100);
    },
  );

  it("exits with code 1 on invalid flags", { timeout: 120_000 }, async () => {
    for (const flags of [
      ["--port", "many"],
      ["--pool", "Ruby"],
      ["--fault", "{}"],
    ]) {
      const child = spawn(program, [...words, ...flags], { stdio: "ignore" });
      expect([flags, await once(child, "exit")]).toEqual([flags, [1, null]]);
    }
  });
});

async function left(directory: string): Promise<string[]> {
  return (await readdir(directory)).filter((name) => name.startsWith("fenced-emulator-"));
}

function processes(argument: string): string[] {
  return readdirSync("/proc").filter((name) => {
    try {
      return /^\d+$/.test(name) && readFileSync(`/proc/${name}/cmdline`, "utf8") === `sleep\0${argument}\0`;
    } catch {
      return false;
    }
  });
}
