import { mkdir, readdir, writeFile } from "node:fs/promises";
import path from "node:path";
import { hasVariable, listProcesses } from "@fenced/executor-kit";
import { needs, nightly } from "@fenced/test-support";
import { describe, expect, it, onTestFinished } from "vitest";
import { connectKept, createKept, remains } from "../support/kept-subject.ts";
import { temporaryDirectory } from "../support/temporary-directory.ts";

const keepAliveMs = 120_000;

/** Finds the session's server above a block. */
const server = [
  "import os",
  "def parent(pid):",
  "    return int(open(f'/proc/{pid}/stat').read().rpartition(')')[2].split()[1])",
  "def is_ours(pid):",
  "    return b'_fenced_session_server' in open(f'/proc/{pid}/cmdline', 'rb').read()",
  "pid = os.getpid()",
  "while not is_ours(pid) or parent(pid) > 1 and is_ours(parent(pid)):",
  "    pid = parent(pid)",
].join("\n");

describe("a session of this host with keepAliveMs", needs("python3", "bash"), () => {
  it("stays in its control group, and ends by itself with what has left its process tree", async () => {
    const workDir = path.join(await temporaryDirectory(), "work");
    await mkdir(workDir);
    const executor = createKept({ stateful: true, keepAliveMs: 1000, workDir });
    onTestFinished(() => executor.stop());
    const escape = "(env -i FENCED_TEST_ESCAPED=1 setsid sleep 600 &) >/dev/null 2>&1; cat /proc/self/cgroup";
    const first = await executor.executeCodeBlocks([{ language: "bash", code: escape }]);
    const { handle } = executor;
    await executor.detach();
    const again = await connectKept(handle);
    onTestFinished(() => again.stop());
    const second = await again.executeCodeBlocks([{ language: "bash", code: "cat /proc/self/cgroup; touch kept.txt" }]);
    expect(second.output).toBe(first.output);
    await again.detach?.();
    await expect.poll(remains, { timeout: 30_000 }).toEqual([]);
    const escaped = (await listProcesses()).filter(({ pid }) => hasVariable(pid, "FENCED_TEST_ESCAPED", "1"));
    const groups = handle?.session["groups"];
    // Without a control group, a program that drops its variables and its parents is out of reach.
    expect(Array.isArray(groups) && groups.length > 0 ? escaped : []).toEqual([]);
    // Nothing but what blocks have created.
    expect(await readdir(workDir)).toEqual(["kept.txt"]);
  });

  it("leaves nothing after stop() although code has stopped its server", nightly, async () => {
    const executor = createKept({ warm: {}, keepAliveMs });
    await executor.start();
    expect(executor.handle).toBeDefined();
    const code = `${server}\nos.kill(pid, 19)`;
    await executor.executeCodeBlocks([{ language: "python", code }], { timeoutMs: 2000 }).catch(() => {});
    await executor.stop();
    expect(await remains()).toEqual([]);
  });

  it("is lost when code ends its server, and leaves nothing", async () => {
    const executor = createKept({ warm: {}, keepAliveMs });
    onTestFinished(() => executor.stop());
    await executor.start();
    const { handle } = executor;
    await executor.executeCodeBlocks([{ language: "python", code: `${server}\nos.kill(pid, 9)` }]).catch(() => {});
    const next = await executor.executeCodeBlocks([{ language: "bash", code: "echo again" }]);
    expect(next.output).toBe("again\n");
    expect(executor.handle).not.toEqual(handle);
    await executor.stop();
    await expect.poll(remains, { timeout: 30_000 }).toEqual([]);
  });

  it("says that a file is in the way of its work directory", async () => {
    const file = path.join(await temporaryDirectory(), "file");
    await writeFile(file, "");
    for (const workDir of [file, path.join(file, "work")]) {
      const executor = createKept({ warm: {}, keepAliveMs, workDir });
      await expect(executor.start()).rejects.toThrow(/set `workDir` to a directory/);
    }
  });

  it("is refused where blocks are processes of the program", () => {
    expect(() => createKept({ keepAliveMs })).toThrow(/needs `warm: \{\}` or `stateful: true`/);
    expect(() => createKept({ keepAliveMs, isolation: "os-sandbox" })).toThrow(/cannot be combined with a sandbox/);
  });
});
