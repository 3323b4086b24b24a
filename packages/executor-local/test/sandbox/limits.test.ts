import { spawn } from "node:child_process";
import { once } from "node:events";
import { writeFile } from "node:fs/promises";
import path from "node:path";
import { text } from "node:stream/consumers";
import { LocalCommandLineCodeExecutor } from "@fenced/executor-local";
import { needs } from "@fenced/test-support";
import { isAlive } from "@fenced/test-support/is-alive";
import { describe, expect, it } from "vitest";
import { hostCommand } from "../support/host-command.ts";
import { bubblewrapsOf, killSandbox } from "../support/sandbox-subject.ts";
import { temporaryDirectory } from "../support/temporary-directory.ts";

const forkBomb = `
import os, sys, time
made = 0
try:
    while True:
        if os.fork() == 0:
            time.sleep(1000)
        made += 1
except OSError as error:
    print(made, error.strerror, flush=True)
`;

/** Runs a fixture as a user in its own process, and returns what it prints. */
async function asUser(user: number, fixture: string, ...words: string[]): Promise<string> {
  const [program, ...rest] = await hostCommand(fixture);
  const env = { PATH: "/usr/local/bin:/usr/bin:/bin", FENCED_TEST_USER: String(user) };
  const child = spawn(program, [...rest, ...words], { env, stdio: ["ignore", "pipe", "inherit"] });
  const [output] = await Promise.all([text(child.stdout), once(child, "exit")]);
  return output;
}

describe("a sandbox's limits", needs("python3", "bash", "bubblewrap", "root"), () => {
  it.each([
    ["root", 0, expect.any(Array)],
    // It cannot create control groups here.
    ["an ordinary user", 65_534, ["FENCED_MEMORY"]],
  ])(
    "stop endless forks, memory and files in memory, and the sandbox stays usable, as %s",
    async (_, user, warnings) => {
      const outcomes: unknown = JSON.parse(await asUser(user, "uses-all.ts", forkBomb));
      expect(outcomes).toEqual({
        forks: expect.stringMatching(/^\d\d Resource temporarily unavailable\n/),
        memory: expect.not.stringContaining("took it all"),
        files: expect.stringMatching(/No space left on device|MemoryError|Killed|memory/),
        after: "alive\n",
        warnings,
      });
    },
  );
});

describe("a sandbox", needs("python3", "bash", "bubblewrap"), () => {
  it("does not get descriptors that this program inherited", async () => {
    const secret = path.join(await temporaryDirectory(), "secret");
    await writeFile(secret, "inherited secret");
    const [program, ...words] = await hostCommand("looks-for-descriptors.ts");
    // Node closes descriptors that directly follow its own, but overlooks those after a gap.
    const shell = spawn("bash", ["-c", 'exec 120<"$1"; shift; exec "$@"', "bash", secret, program, ...words], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    const [output] = await Promise.all([text(shell.stdout), once(shell, "exit")]);
    expect(JSON.parse(output)).toEqual({ host: true, sandboxed: [] });
  });

  it("ends with all of its processes when bubblewrap is killed, and the next call gets a new one", async () => {
    const reasons: string[] = [];
    await using executor = new LocalCommandLineCodeExecutor({
      isolation: "os-sandbox",
      onSessionLost: (reason) => reasons.push(reason),
    });
    await executor.executeCodeBlocks([
      { language: "bash", code: "echo kept > kept.txt; echo gone > /tmp/gone.txt; setsid sleep 1000 &" },
    ]);
    await killSandbox(await bubblewrapsOf(executor));
    await expect.poll(() => reasons).toEqual([expect.stringMatching(/^The sandbox is lost: /)]);
    const result = await executor.executeCodeBlocks([
      { language: "bash", code: "cat kept.txt; ls /tmp/gone.txt; ls /proc | grep -c '^[0-9]'" },
    ]);
    expect(result).toMatchObject({ stateLost: true, stdout: expect.stringMatching(/^kept\n[34567]\n$/) });
  });

  it.each([
    ["limits", "resource.prlimit(1, resource.RLIMIT_FSIZE, (5, 5))"],
    ["priority", "os.setpriority(os.PRIO_PROCESS, 1, 19)"],
  ])("loses the %s that a block gives its first process when it is restarted", async (_, change) => {
    await using executor = new LocalCommandLineCodeExecutor({ isolation: "os-sandbox" });
    const code = `import os, resource; ${change}`;
    expect(await executor.executeCodeBlocks([{ language: "python", code }])).toMatchObject({ exitCode: 0 });
    await executor.restart();
    const write = "printf '%s' 123456789 > written; cat written; nice";
    expect((await executor.executeCodeBlocks([{ language: "bash", code: write }])).output).toBe("1234567890\n");
  });

  it("leaves no process behind when it is stopped while a program ignores signals", async () => {
    const executor = new LocalCommandLineCodeExecutor({ isolation: "os-sandbox" });
    const code =
      "trap '' TERM HUP INT; (setsid bash -c 'trap \"\" TERM; while :; do sleep 1; done' &) ; echo ready; sleep 1000";
    let pids: number[] = [];
    const read = async (): Promise<void> => {
      for await (const event of executor.streamCodeBlocks([{ language: "bash", code }])) {
        if (event.type !== "stdout") continue;
        pids = await bubblewrapsOf(executor);
        await executor.stop();
      }
    };
    await expect(read()).rejects.toThrow("stopped");
    expect(pids).not.toEqual([]);
    expect(pids.filter((pid) => isAlive(pid))).toEqual([]);
  });
});
