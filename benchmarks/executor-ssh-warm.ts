/**
 * Measures a Python block over ssh that is forked from a waiting interpreter (`warm`), or runs in one that stays alive
 * (`stateful`), against `ssh host python3 -c` over a shared connection, with a server on this machine.
 */
// needs: ssh, python3
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { SshCommandLineCodeExecutor, type SshExecutorOptions } from "@fenced/executor-ssh";
import { host, SshServer } from "@fenced/test-support/ssh-server";
import { forkerCode } from "@fenced/test-support/warm-python";
import { byTurns, report, timed, type Comparison } from "./measure.ts";

await using server = await SshServer.start();
const { configFile, directory } = server;
const control = join(directory, "control");
const rounds = 40;
// Not a version manager's shim, which takes longer than Python.
const python = execFileSync("python3", ["-c", "import sys; print(sys.executable)"], { encoding: "utf8" }).trim();
const imports = "import asyncio, email.mime.text, json, sqlite3, urllib.request, xml.dom.minidom\nprint(1)";
const modules = ["asyncio", "email.mime.text", "json", "sqlite3", "urllib.request", "xml.dom.minidom"];
const megabytes = "import sys\nfor _ in range(100): sys.stdout.write('x' * 1048576)";

function create(options: Partial<SshExecutorOptions>): SshCommandLineCodeExecutor {
  const languages = { python: { extension: "py", command: [python] } };
  return new SshCommandLineCodeExecutor({ host, configFile, languages, timeoutMs: 300_000, ...options });
}

async function run(executor: SshCommandLineCodeExecutor, code: string): Promise<string> {
  const result = await executor.executeCodeBlocks([{ language: "python", code }]);
  if (result.exitCode !== 0) throw new Error(result.output);
  return result.output.trim();
}

async function awaitWarm(executor: SshCommandLineCodeExecutor): Promise<void> {
  const deadline = performance.now() + 60_000;
  while (!(await run(executor, forkerCode)).endsWith("True")) {
    if (performance.now() > deadline) throw new Error("no interpreter is waiting");
  }
}

/** Runs Python with `ssh`, and reads its output to the end. */
async function ssh(code: string): Promise<void> {
  const words = ["-F", configFile, "-o", `ControlPath=${control}`, host, `${python} -c '${code.replaceAll("'", '"')}'`];
  const child = spawn("ssh", words, { stdio: ["ignore", "pipe", "inherit"] });
  child.stdout.resume();
  await once(child, "close");
  if (child.exitCode !== 0) throw new Error(`ssh ended with ${String(child.exitCode)}`);
}

const against = (executor: SshCommandLineCodeExecutor, code: string, times = rounds) =>
  byTurns(
    times,
    () => timed(() => ssh(code)),
    () => timed(() => run(executor, code)),
  );

async function starts(options: Partial<SshExecutorOptions>): Promise<number> {
  await using executor = create(options);
  return await timed(() => executor.start());
}

/** From the end of `start()` to the end of the first block. */
async function firstBlock(options: Partial<SshExecutorOptions>): Promise<number> {
  await using executor = create(options);
  await executor.start();
  return await timed(() => run(executor, "print(1)"));
}

const connection = spawn("ssh", ["-F", configFile, "-o", `ControlPath=${control}`, "-M", "-N", host]);
try {
  await using cold = create({});
  await using warm = create({ warm: {} });
  await using preloaded = create({ warm: { preload: modules } });
  await using stateful = create({ stateful: true });
  for (const each of [cold, stateful]) await each.start();
  for (const each of [warm, preloaded]) await awaitWarm(each);
  const rows: Omit<Comparison, "unit">[] = [
    { what: "cold python block, `print(1)`", ...(await against(cold, "print(1)")), goal: "" },
    { what: "python block, `print(1)`", ...(await against(warm, "print(1)")), goal: "ratio at most 0.5" },
    { what: "block that imports preloaded modules", ...(await against(preloaded, imports)), goal: "ratio at most 0.3" },
    { what: "stateful python block, `print(1)`", ...(await against(stateful, "print(1)")), goal: "at most 5 ms" },
    { what: "100 MB of output", ...(await against(warm, megabytes, 3)), goal: "ratio at most 2" },
    {
      what: "first block after start, against the same cold",
      ...(await byTurns(
        6,
        () => firstBlock({}),
        () => firstBlock({ warm: {} }),
      )),
      goal: "",
    },
    {
      what: "start, against the same cold",
      ...(await byTurns(
        6,
        () => starts({}),
        () => starts({ warm: {} }),
      )),
      goal: "",
    },
  ];
  report(
    "SSH executor with warm and stateful Python, against `ssh host python3 -c`",
    rows.map((row): Comparison => ({ ...row, unit: "ms" })),
  );
} finally {
  connection.kill();
  await once(connection, "exit");
}
