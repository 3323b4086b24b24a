/**
 * Measures the overhead of the Jupyter executor over a bare kernel: the same cells, sent by Jupyter's own Python client
 * directly to a kernel's sockets, without a server and a WebSocket in between, in the same run.
 */
// needs: jupyter
import { spawn, type ChildProcessByStdio } from "node:child_process";
import { createInterface } from "node:readline";
import type { Readable, Writable } from "node:stream";
import { JupyterCodeExecutor, LocalJupyterServer } from "@fenced/executor-jupyter";
import { jupyterPythons } from "@fenced/test-support/backends";
import { byTurns, memoryGrowth, report, timed } from "./measure.ts";

const python = process.env.FENCED_BENCH_PYTHON ?? jupyterPythons.jupyter;

/** Reads commands: `start` starts a kernel and prints the milliseconds, a JSON string runs a cell and does the same. */
const bareClient = `
import json, sys, time
from jupyter_client.manager import start_new_kernel
manager = client = None
for line in sys.stdin:
    began = time.perf_counter()
    if line == "start\\n":
        if manager is not None:
            client.stop_channels(); manager.shutdown_kernel(now=True)
            began = time.perf_counter()
        manager, client = start_new_kernel(kernel_name="python3")
    else:
        sent = client.execute(json.loads(line))
        while True:
            message = client.get_iopub_msg(timeout=300)
            if message["parent_header"].get("msg_id") == sent and message["content"].get("execution_state") == "idle": break
        client.get_shell_msg(timeout=300)
    print((time.perf_counter() - began) * 1000, flush=True)
client.stop_channels()
manager.shutdown_kernel(now=True)
__import__("os")._exit(0)
`;

/** A kernel without a server. */
class BareKernel implements AsyncDisposable {
  readonly #process: ChildProcessByStdio<Writable, Readable, null> = spawn(python, ["-c", bareClient], {
    stdio: ["pipe", "pipe", "inherit"],
    env: { ...process.env, PYDEVD_DISABLE_FILE_VALIDATION: "1" },
  });
  readonly #lines = createInterface(this.#process.stdout)[Symbol.asyncIterator]();

  /** @returns milliseconds. */
  async do(command: string): Promise<number> {
    this.#process.stdin.write(`${command}\n`);
    return Number((await this.#lines.next()).value);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#process.stdin.end();
    await this.#lines.next();
  }
}

await using bare = new BareKernel();
await using server = new LocalJupyterServer({ python });
await server.start();
await using executor = new JupyterCodeExecutor({ server, timeoutMs: 300_000 });
const megabytes = (count: number): string =>
  `line = "x" * 999 + "\\n"\nfor _ in range(${count}000): print(line, end="")`;

async function run(code: string): Promise<void> {
  const result = await executor.executeCodeBlocks([{ language: "python", code }]);
  if (result.exitCode !== 0) throw new Error(result.output);
}

async function startAnother(): Promise<number> {
  const another = new JupyterCodeExecutor({ server });
  const milliseconds = await timed(() => another.start());
  await another.stop();
  return milliseconds;
}

await bare.do("start");
await executor.start();
report("Jupyter executor against a bare kernel", [
  {
    what: "start, on a running server",
    unit: "ms",
    ...(await byTurns(10, () => bare.do("start"), startAnother)),
    goal: "at most 1.2 times raw",
  },
  {
    what: "cell, `print(1)`",
    unit: "ms",
    ...(await byTurns(
      200,
      () => bare.do(JSON.stringify("print(1)")),
      () => timed(() => run("print(1)")),
    )),
    goal: "at most 3 ms over raw",
  },
  {
    what: "100 MB of output",
    unit: "ms",
    ...(await byTurns(
      3,
      () => bare.do(JSON.stringify(megabytes(100))),
      () => timed(() => run(megabytes(100))),
    )),
    goal: "",
  },
  {
    what: "memory growth by 100 MB of output (raw: of an empty cell)",
    unit: "MB",
    ...(await byTurns(
      3,
      () => memoryGrowth(() => run("")),
      () => memoryGrowth(() => run(megabytes(100))),
    )),
    goal: "",
  },
  {
    what: "memory growth by 400 MB of output (raw: by 100 MB)",
    unit: "MB",
    ...(await byTurns(
      3,
      () => memoryGrowth(() => run(megabytes(100))),
      () => memoryGrowth(() => run(megabytes(400))),
    )),
    goal: "bounded: both below 100 MB",
  },
]);
