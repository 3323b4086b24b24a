import { readFile } from "node:fs/promises";
import { ControlGroup, listProcesses } from "@fenced/executor-kit";
import { LocalCommandLineCodeExecutor } from "@fenced/executor-local";
import { needs } from "@fenced/test-support";
import { describe, expect, it } from "vitest";

/** Everything that a program can see of how it was started. */
const look = `
import json, os, sys
print(json.dumps({
    "pid": os.getpid(),
    "env": {name: value for name, value in os.environ.items() if name != "FENCED_BLOCK"},
    "marked": "FENCED_BLOCK" in os.environ,
    "cwd": os.getcwd(),
    "descriptors": sorted(int(each) for each in os.listdir("/proc/self/fd"))[:-1],
    "input": sys.stdin.read(),
    "leads": os.getpid() == os.getpgid(0) == os.getsid(0),
    "parent": os.getppid(),
    "umask": os.umask(0),
    "group": open("/proc/self/cgroup").read().rpartition("0::")[2].strip().count("/"),
}))
`;

/** The shells of this process that wait to become a program. */
async function waiting(): Promise<number[]> {
  const children = (await listProcesses()).filter(({ parent }) => parent === process.pid);
  const lines = children.map(async ({ pid }) => {
    return { pid, line: await readFile(`/proc/${pid}/cmdline`, "utf8").catch(() => "") };
  });
  return (await Promise.all(lines)).filter(({ line }) => line.includes("/proc/self/fd/3")).map(({ pid }) => pid);
}

const made = (await (await ControlGroup.plan(`fenced-probe-${process.pid}`))?.remove()) === true;

async function run(executor: LocalCommandLineCodeExecutor, code: string, stdin?: string) {
  const result = await executor.executeCodeBlocks([{ language: "python", code }], stdin === undefined ? {} : { stdin });
  if (result.exitCode !== 0) throw new Error(result.output);
  return result.output;
}

describe.skipIf(!made)("a shell that waits in a control group", needs("python3"), () => {
  it("becomes the next program, which sees nothing of it", async () => {
    const env = { QUOTES: `it's "$HOME" \`pwd\`\n\\ *`, EMPTY: "" };
    await using executor = new LocalCommandLineCodeExecutor({ env });
    await executor.start();
    await expect.poll(waiting).toHaveLength(1);
    const [pid] = await waiting();
    const seen: unknown = JSON.parse(await run(executor, look));
    expect(seen).toMatchObject({ pid, marked: true, input: "", env });
    // With input, a program is started directly.
    const direct: unknown = JSON.parse(await run(executor, look, ""));
    expect(seen).toEqual({ ...Object(direct), pid });
  });

  it("is not needed: if something kills it, the program is started directly", async () => {
    await using executor = new LocalCommandLineCodeExecutor();
    await executor.start();
    await expect.poll(waiting).toHaveLength(1);
    const [pid = 0] = await waiting();
    process.kill(pid, "SIGKILL");
    await expect.poll(waiting).toEqual([]);
    expect(await run(executor, "print(1)")).toBe("1\n");
    // Another one takes its place.
    await expect.poll(waiting).toHaveLength(1);
  });

  it("ends with the session", async () => {
    const executor = new LocalCommandLineCodeExecutor();
    await executor.start();
    await expect.poll(waiting).toHaveLength(1);
    await run(executor, "print(1)");
    await executor.stop();
    expect(await waiting()).toEqual([]);
  });
});
