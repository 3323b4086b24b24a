import { mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import path from "node:path";
import { setImmediate, setTimeout } from "node:timers/promises";
import { hostFunction } from "@fenced/core";
import { hasVariable, listProcesses } from "@fenced/executor-kit";
import { needs, nightly } from "@fenced/test-support";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { z } from "zod";
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

describe("a session of this host with keepAliveMs", needs("python3", "bash", "node"), () => {
  it("stays in its control group, and ends by itself with what has left its process tree", async () => {
    const workDir = path.join(await temporaryDirectory(), "work");
    await mkdir(workDir);
    const executor = createKept({ stateful: true, keepAliveMs: 10_000, workDir });
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
    await expect.poll(remains, { timeout: 60_000 }).toEqual([]);
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
    await expect.poll(remains, { timeout: 60_000 }).toEqual([]);
  });

  it("has no run that was being submitted when it was restarted", async () => {
    const executor = createKept({ warm: {}, keepAliveMs, maxWorkspaceBytes: 1_073_741_824 });
    onTestFinished(() => executor.stop());
    await executor.start();
    const submitting = executor.submit([{ language: "bash", code: "sleep 600" }]);
    // The place is asked how full its work directory is.
    await setImmediate();
    await executor.restart();
    const run = await submitting;
    await expect(run.result()).rejects.toThrow("restarted");
    const { handle } = executor;
    await executor.detach();
    const again = await connectKept(handle);
    onTestFinished(() => again.stop());
    expect(again.runs().map(({ state }) => state)).not.toContain("running");
  });

  it("says in one result only that a submitted run has ended the interpreter", async () => {
    const executor = createKept({ stateful: true, keepAliveMs });
    onTestFinished(() => executor.stop());
    const lost: boolean[] = [];
    for (const code of ["print(1)", "import os; os._exit(3)", "print(2)", "print(3)"]) {
      const run = await executor.submit([{ language: "python", code }]);
      lost.push((await run.result()).stateLost);
    }
    expect(lost).toEqual([false, true, false, false]);
  });

  it("goes on with a run whose new interpreter starts while another program takes the session over", async () => {
    const directory = await temporaryDirectory();
    await writeFile(
      path.join(directory, "sitecustomize.py"),
      `import os, sys, time
here = ${JSON.stringify(directory)}
if os.path.exists(here + "/slow") and "_fenced_interpreter" in " ".join(sys.orig_argv):
    open(here + "/starting", "w").close()
    while os.path.exists(here + "/slow"):
        time.sleep(0.01)
`,
    );
    const first = createKept({ stateful: true, keepAliveMs, env: { PYTHONPATH: directory } });
    onTestFinished(() => first.stop());
    const blocks = [
      {
        language: "python",
        code: `open(${JSON.stringify(path.join(directory, "slow"))}, "w").close()\nimport os\nos._exit(0)`,
      },
      { language: "python", code: "kept = 'new'\nprint(kept)" },
    ];
    const { id } = await first.submit(blocks);
    await vi.waitFor(() => readFile(path.join(directory, "starting")), { timeout: 60_000 });
    const connecting = connectKept(first.handle, { takeOver: true });
    await vi.waitFor(() => expect(first.runs()[0]?.state).toBe("failed"), { timeout: 60_000 });
    await rm(path.join(directory, "slow"));
    const second = await connecting;
    onTestFinished(() => second.stop());
    expect((await second.run(id).result()).output).toBe("new\n");
    const { output } = await second.executeCodeBlocks([{ language: "python", code: "print(kept)" }]);
    expect(output).toBe("new\n");
  });

  it("takes no function for a run of another program that nobody here would approve", async () => {
    const paying = { name: "pay", description: "Pays.", input: z.object({}), execute: () => "paid" };
    const pay = hostFunction({ ...paying, needsApproval: true });
    const approveHostCall = () => ({ approved: true });
    const first = createKept({ warm: {}, keepAliveMs, functions: [pay], approveHostCall });
    onTestFinished(() => first.stop());
    const code =
      "import os, time\nfrom functions import pay\nwhile not os.path.exists('go'): time.sleep(0.01)\nprint(pay())";
    const blocks = [{ language: "python", code }];
    await first.submit(blocks, { id: "pays" });
    const { handle } = first;
    await first.detach();
    const second = await connectKept(handle);
    onTestFinished(() => second.stop());
    await expect(second.submit(blocks, { id: "pays", functions: [pay] })).rejects.toThrow(
      "nothing is set up to approve",
    );
    const approved = hostFunction({ ...paying, needsApproval: true, approve: approveHostCall });
    const run = await second.submit(blocks, { id: "pays", functions: [approved] });
    await second.files.write("go", "");
    expect((await run.result()).output).toBe("paid\n");
  });

  it("does not begin a run whose time was up while it waited for its functions", async () => {
    const add = hostFunction({ name: "add", description: "Adds one.", input: z.object({}), execute: () => 1 });
    const executor = createKept({ stateful: true, keepAliveMs });
    onTestFinished(() => executor.stop());
    await executor.start();
    const until = "import os, time\nwhile not os.path.exists('go'): time.sleep(0.01)";
    const call = executor.executeCodeBlocks([{ language: "python", code: until }]);
    const blocks = [{ language: "python", code: "print('begun')" }];
    const run = await executor.submit(blocks, { functions: [add], totalTimeoutMs: 1000 });
    await setTimeout(2000);
    await executor.files.write("go", "");
    const { output, timedOut } = await run.result();
    expect({ output, timedOut }).toEqual({ output: "", timedOut: true });
    await call;
  });

  it("says that a file is in the way of its work directory", async () => {
    const file = path.join(await temporaryDirectory(), "file");
    await writeFile(file, "");
    for (const workDir of [file, path.join(file, "work")]) {
      const executor = createKept({ warm: {}, keepAliveMs, workDir });
      await expect(executor.start()).rejects.toThrow(/set `workDir` to a directory/);
    }
  });

  it("leaves nothing in its work directory when stop() resolves", async () => {
    const workDir = path.join(await temporaryDirectory(), "work");
    const who = hostFunction({ name: "who", description: "Says who.", input: z.object({}), execute: () => "me" });
    const executor = createKept({ warm: {}, keepAliveMs, workDir, functions: [who] });
    onTestFinished(() => executor.stop());
    const call = 'import { who } from "functions";\nconsole.log(await who({}));';
    expect((await executor.executeCodeBlocks([{ language: "javascript", code: call }])).output).toBe("me\n");
    // Its removal takes a while.
    const more = "cd node_modules/functions && mkdir more && cd more && seq 3000 | xargs touch";
    expect((await executor.executeCodeBlocks([{ language: "bash", code: more }])).exitCode).toBe(0);
    await executor.stop();
    expect(await readdir(workDir)).toEqual([]);
  });

  it("is waited for by stop(), however long its removal takes", { ...nightly, timeout: 120_000 }, async () => {
    const executor = createKept({ warm: {}, keepAliveMs });
    const more = "seq 20000 | xargs touch";
    expect((await executor.executeCodeBlocks([{ language: "bash", code: more }])).exitCode).toBe(0);
    const directory = z.string().parse(executor.handle?.session["directory"]);
    const stopping = executor.stop();
    const removing = await vi.waitUntil(() => removerOf(directory), { timeout: 60_000, interval: 1 });
    process.kill(removing, "SIGSTOP");
    await setTimeout(25_000);
    process.kill(removing, "SIGCONT");
    await stopping;
    expect(await remains()).toEqual([]);
  });

  it("is refused where blocks are processes of the program", () => {
    expect(() => createKept({ keepAliveMs })).toThrow(
      /needs `warm: \{\}`, `stateful: true` or `isolation: "os-sandbox"`/,
    );
  });
});

/** The `rm` that removes a directory. */
async function removerOf(directory: string): Promise<number | undefined> {
  for (const { pid } of await listProcesses()) {
    const words = await readFile(`/proc/${pid}/cmdline`, "utf8").catch(() => "");
    if (words.startsWith("rm\0") && words.includes(`\0${directory}\0`)) return pid;
  }
  return undefined;
}
