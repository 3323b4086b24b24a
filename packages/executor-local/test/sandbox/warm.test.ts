import { readFile } from "node:fs/promises";
import { type CodeBlock, FunctionWithRequirements, type CodeResult } from "@fenced/core";
import { hasVariable, listProcesses } from "@fenced/executor-kit";
import { LocalCommandLineCodeExecutor, type WarmOptions } from "@fenced/executor-local";
import { testCodeExecutor } from "@fenced/executor-testkit";
import { mechanism, needs } from "@fenced/test-support";
import { forkerCode } from "@fenced/test-support/warm-python";
import { afterAll, describe, expect, it } from "vitest";
import { bubblewrapsOf, killSandbox, sandboxSubject } from "../support/sandbox-subject.ts";
import { WarmExecutor } from "../support/warm-executor.ts";

async function printed(executor: WarmExecutor, code: string): Promise<string> {
  const result = await executor.executeCodeBlocks([{ language: "python", code }]);
  return result.output.trim();
}

describe("warm Python in a sandbox", needs("python3", "bash", "node", "bubblewrap"), () => {
  testCodeExecutor(
    { describe, it, afterAll },
    {
      ...sandboxSubject,
      name: "LocalCommandLineCodeExecutor, in an OS sandbox with warm Python,",
      create: (options) => new WarmExecutor({ ...options, isolation: "os-sandbox", warm: {} }),
    },
    mechanism("python functions", "lost session"),
  );
  // Otherwise the suite would prove nothing.
  afterAll(() => {
    if (WarmExecutor.sessions === 0) throw new Error("No session had a waiting interpreter.");
  });

  it("preloads modules, and runs blocks that cannot reach it and have their own variables", async () => {
    await using executor = new WarmExecutor({ isolation: "os-sandbox", warm: { preload: ["decimal"] } });
    const [template, isWarm] = (await printed(executor, forkerCode)).split(" ");
    expect(isWarm).toBe("True");
    const code = `
import ctypes, os, sys
print("decimal" in sys.modules)
nexts = others = []
while not others:
    parents = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        try: state, parent, *_ = open("/proc/%s/stat" % name).read().rpartition(")")[2].split()
        except OSError: continue
        # Not those of earlier blocks that have ended.
        if state != "Z": parents[int(name)] = int(parent)
    nexts = [pid for pid, parent in parents.items() if parent == ${template} and pid != os.getppid()]
    others = [pid for pid, parent in parents.items() if parent in nexts]
for pid in [${template}] + nexts + others:
    for name in ("mem", "environ", "maps", "fd/3"):
        try: print(open("/proc/%d/%s" % (pid, name), "rb").read(1))
        except OSError: print("refused")
    # PTRACE_SEIZE
    print("refused" if ctypes.CDLL(None).ptrace(0x4206, pid, None, None) < 0 else "seized")
x = 1
`;
    expect((await printed(executor, code)).split("\n")).toEqual(["True", ...Array<string>(15).fill("refused")]);
    expect(await printed(executor, "print('x' in globals())")).toBe("False");
  });

  it("waits again in the sandbox that replaces a lost one", async () => {
    await using executor = new WarmExecutor({
      isolation: "os-sandbox",
      warm: {},
      functions: [FunctionWithRequirements.fromString("def twice(x: int) -> int:\n    return 2 * x\n")],
    });
    await executor.start();
    await killSandbox(await bubblewrapsOf(executor));
    await expect.poll(() => printed(executor, forkerCode), { timeout: 60_000 }).toMatch(/True$/);
    expect(await printed(executor, "from functions import twice\nprint(twice(21))")).toBe("42");
  });
});

const isSpare = 'require("fs").readFileSync("/proc/self/cmdline", "utf8").includes("waiting.cjs")';
/** JavaScript programs, by name; they print what they see, or end in their own way. */
const programs: Readonly<Record<string, CodeBlock>> = {
  itself:
    js(`console.log(process.argv.length, process.argv[0] === process.execPath, process.argv[1] === __filename, process.execArgv);
console.log(require.main === module, module.parent, module.id, module.children, Object.keys(require.cache).length);
console.log(process.cwd() === __dirname, module.paths[0] === __dirname + "/node_modules", process.mainModule === module);`),
  environment: js("console.log(Object.keys(process.env).sort(), process.env.X)"),
  "an ES module": js(
    'import fs from "fs";\nconsole.log(import.meta.url, await Promise.resolve(5), typeof require, this)',
    "a.mjs",
  ),
  "an exit code": js("process.exitCode = 7; console.log('x')"),
  "an exit": js("process.on('exit', (code) => console.log('exit', code)); process.exit(3)"),
  "an exception": js("throw new Error('boom')"),
  "an unhandled rejection": js("Promise.reject(new Error('boom'))"),
  "a syntax error": js("let x = ("),
  "a wait without end": js("await new Promise(() => {})", "b.mjs"),
  order: js(`setTimeout(() => setImmediate(() => console.log("timer, then immediate")), 5);
process.nextTick(() => console.log("tick"));
Promise.resolve().then(() => console.log("promise"));
console.log("first");`),
  streams: js(
    "const fs = require('fs'); console.log(fs.readFileSync(0).length, fs.fstatSync(0).isCharacterDevice(), fs.fstatSync(1).isFIFO(), fs.readdirSync('/proc/self/fd').length > 3)",
  ),
  "a worker": js(
    "const { Worker, isMainThread } = require('worker_threads'); if (isMainThread) new Worker(__filename); else console.log(process.argv.length)",
  ),
  "a process of its own": js(
    "console.log(require('child_process').execFileSync(process.execPath, ['-p', 'process.env.X']).toString())",
  ),
};

function js(code: string, filename?: string): CodeBlock {
  return { language: "javascript", code, ...(filename !== undefined && { filename }) };
}

/** The outcome of a program, without file names and Node's own stack frames. */
function steady({ stdout, stderr, exitCode }: CodeResult): Pick<CodeResult, "stdout" | "stderr" | "exitCode"> {
  const strip = (text: string): string =>
    text.replaceAll(/^.*\bat .*$\n?/gm, "").replaceAll(/[^\s'"]*\/workspace[^\s'")]*/g, "FILE");
  return { stdout: strip(stdout), stderr: strip(stderr), exitCode };
}

/** The JavaScript interpreters that wait in the executor's sandbox, at most one. */
async function spares(session: string): Promise<number[]> {
  const found: number[] = [];
  for (const { pid } of await listProcesses()) {
    if (!hasVariable(pid, "FENCED_SESSION", session)) continue;
    const command = await readFile(`/proc/${pid}/cmdline`, "utf8").catch(() => "");
    if (command.includes("waiting.cjs") && !command.includes("_fenced")) found.push(pid);
  }
  return found;
}

/** Waits until a JavaScript interpreter is waiting in the executor's sandbox. */
async function awaitSpare(session: string): Promise<number> {
  let found: number[] = [];
  const count = async (): Promise<number> => (found = await spares(session)).length;
  await expect.poll(count, { timeout: 60_000 }).toBe(1);
  return found[0] ?? 0;
}

describe("a waiting JavaScript interpreter in a sandbox", needs("python3", "node", "bubblewrap"), () => {
  const create = (warm: false | WarmOptions): LocalCommandLineCodeExecutor =>
    new LocalCommandLineCodeExecutor({ isolation: "os-sandbox", warm, env: { X: "1" } });

  it("runs programs that see and do the same as in a new one", { timeout: 120_000 }, async () => {
    await using cold = create(false);
    await using warm = create({});
    const session = (await warm.executeCodeBlocks([js("console.log(process.env.FENCED_SESSION)")])).stdout.trim();
    for (const [name, program] of Object.entries(programs)) {
      await awaitSpare(session);
      const found = steady(await warm.executeCodeBlocks([program]));
      expect({ name, ...found }).toEqual({ name, ...steady(await cold.executeCodeBlocks([program])) });
    }
    await awaitSpare(session);
    expect((await warm.executeCodeBlocks([js(`console.log(${isSpare})`)])).stdout).toBe("true\n");
  });

  it("ends before any other block runs, and is not used for blocks with input or other variables", async () => {
    await using executor = create({});
    const session = (await executor.executeCodeBlocks([js("console.log(process.env.FENCED_SESSION)")])).stdout.trim();
    await awaitSpare(session);
    const code = "cat /proc/[0-9]*/cmdline | tr '\\0' ' ' | grep -c '[w]aiting.cjs'";
    expect((await executor.executeCodeBlocks([{ language: "sh", code }])).stdout).toBe("0\n");
    const blocks = [js(`console.log(${isSpare}, process.env.Y, require("fs").readFileSync(0, "utf8"))`)];
    expect((await executor.executeCodeBlocks(blocks)).stdout).toBe("false undefined \n");
    await awaitSpare(session);
    expect((await executor.executeCodeBlocks(blocks, { stdin: "text" })).stdout).toBe("false undefined text\n");
    await awaitSpare(session);
    expect((await executor.executeCodeBlocks(blocks, { env: { Y: "2" } })).stdout).toBe("false 2 \n");
    await awaitSpare(session);
    expect((await executor.executeCodeBlocks(blocks, { env: { Y: "2" } })).stdout).toBe("true 2 \n");
  });

  it("does not wait with variables that make Node run files of earlier blocks", async () => {
    await using executor = create({});
    await executor.start();
    await executor.files.write("hook.cjs", "globalThis.hooked = 1");
    const env = { NODE_OPTIONS: "--require ./hook.cjs" };
    const code = `console.log(globalThis.hooked, ${isSpare}, process.env.FENCED_SESSION)
require("fs").writeFileSync("hook.cjs", "globalThis.hooked = 2")`;
    const [, , session = ""] = (await executor.executeCodeBlocks([js(code)], { env })).stdout.trim().split(" ");
    const { stdout } = await executor.executeCodeBlocks([js(code)], { env });
    expect(stdout).toBe(`2 false ${session}\n`);
    expect(await spares(session)).toEqual([]);
  });

  it("does not fail a block when it dies", async () => {
    await using executor = create({});
    const session = (await executor.executeCodeBlocks([js("console.log(process.env.FENCED_SESSION)")])).stdout.trim();
    const first = await awaitSpare(session);
    process.kill(first, "SIGKILL");
    expect((await executor.executeCodeBlocks([js("console.log(42)")])).stdout).toBe("42\n");
    expect(await awaitSpare(session)).not.toBe(first);
  });

  it("does not wait while a process runs that a block has left behind", async () => {
    await using executor = create({});
    const leave = "require('child_process').spawn('sleep', ['1000'], { stdio: 'ignore', detached: true }).unref()";
    await executor.executeCodeBlocks([js(leave)]);
    const code = "cat /proc/[0-9]*/cmdline | tr '\\0' ' '";
    const { stdout } = await executor.executeCodeBlocks([{ language: "sh", code }]);
    expect(stdout).toContain("sleep 1000");
    expect(stdout).not.toContain("waiting.cjs");
    expect((await executor.executeCodeBlocks([js(`console.log(${isSpare})`)])).stdout).toBe("false\n");
  });
});
