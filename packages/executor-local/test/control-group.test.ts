import { spawn } from "node:child_process";
import { once } from "node:events";
import { access, readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { ControlGroup } from "@fenced/executor-kit";
import { LocalCommandLineCodeExecutor } from "@fenced/executor-local";
import { needs } from "@fenced/test-support";
import { bundledCommand } from "@fenced/test-support/bundled-command";
import { describe, expect, it } from "vitest";
import { temporaryDirectory } from "./support/temporary-directory.ts";

const probe = await ControlGroup.plan("fenced-probe");
const made = (await probe?.make()) === true;
await probe?.remove();

/** Forks forever: each process has no environment and its own session, starts the next one and ends. */
const relay = (word: string) => `
import os, sys, time
program = "import os, sys, time\\ntime.sleep(0.005)\\nif os.fork(): os._exit(0)\\nos.setsid()\\nos.execve(sys.executable, [sys.executable, '-c', sys.argv[1], sys.argv[1], sys.argv[2]], {})"
if os.fork() == 0:
    os.setsid()
    null = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2): os.dup2(null, fd)
    os.execve(sys.executable, [sys.executable, "-c", program, program, "${word}"], {})
time.sleep(0.3)
print("started", flush=True)
`;

/** Whether any process of this host has the word in its command line. */
async function runs(word: string): Promise<boolean> {
  const pids = (await readdir("/proc")).filter((name) => /^\d+$/.test(name));
  const lines = await Promise.all(pids.map((pid) => readFile(`/proc/${pid}/cmdline`, "utf8").catch(() => "")));
  return lines.some((line) => line.split("\0").includes(word));
}

/** Looks several times, since one look can miss a process that is being replaced by the next. */
async function isGone(word: string): Promise<boolean> {
  for (let look = 0; look < 20; look += 1) {
    if (await runs(word)) return false;
    await sleep(10);
  }
  return true;
}

/** The session's control group, in which the program with this word runs. */
async function groupOf(word: string): Promise<string> {
  for (;;) {
    for (const pid of await readdir("/proc")) {
      const line = await readFile(`/proc/${pid}/cmdline`, "utf8").catch(() => "");
      if (!line.split("\0").includes(word)) continue;
      const text = await readFile(`/proc/${pid}/cgroup`, "utf8").catch(() => "");
      const [name] = /fenced-[0-9a-f-]+/.exec(text) ?? [];
      if (name !== undefined) return join(probe?.directory ?? "", "..", name);
    }
  }
}

const exists = async (place: string): Promise<boolean> =>
  access(place).then(
    () => true,
    () => false,
  );

const inSystem = process.platform === "linux" ? [{}, { warm: {} }] : [{}];

describe.each(inSystem)(
  "with %j, a program that forks forever, without an environment and in its own sessions,",
  needs("python3"),
  (options) => {
    it.skipIf(!made)("is ended by stop(), which removes its control group", async () => {
      const executor = new LocalCommandLineCodeExecutor(options);
      await executor.executeCodeBlocks([{ language: "python", code: relay("relay-stop") }]);
      const group = await groupOf("relay-stop");
      await executor.stop();
      expect(await isGone("relay-stop")).toBe(true);
      expect(await exists(group)).toBe(false);
    });

    it.skipIf(!made)("is ended by the time limit, which ends nothing of other blocks", async () => {
      await using executor = new LocalCommandLineCodeExecutor(options);
      await executor.executeCodeBlocks([{ language: "python", code: relay("relay-other") }]);
      const code = `${relay("relay-limit")}\nwhile True: pass`;
      const result = await executor.executeCodeBlocks([{ language: "python", code }], { timeoutMs: 2000 });
      expect(result.timedOut).toBe(true);
      expect(await isGone("relay-limit")).toBe(true);
      expect(await isGone("relay-other")).toBe(false);
    });

    it.skipIf(!made)("is ended when its host program is killed", async () => {
      const file = join(import.meta.dirname, "fixtures/runs-a-block.ts");
      const [program, ...words] = await bundledCommand(file, relay("relay-death"), JSON.stringify(options));
      const temporary = await temporaryDirectory();
      const host = spawn(program, words, {
        env: { ...process.env, FENCED_TEST_TMPDIR: temporary },
        stdio: ["ignore", "pipe", "inherit"],
      });
      await once(host.stdout, "data");
      const group = await groupOf("relay-death");
      host.kill("SIGKILL");
      await expect.poll(() => isGone("relay-death"), { timeout: 60_000 }).toBe(true);
      await expect.poll(() => exists(group), { timeout: 60_000 }).toBe(false);
      await expect.poll(() => readdir(temporary), { timeout: 60_000 }).toEqual([]);
    });
  },
);
