/**
 * Measures a host function call in a Jupyter kernel, against a line of `input()` in the same kernel, which also asks this program
 * and waits for its answer. `FENCED_BENCH_PYTHON`: a Python with jupyter_server (default: found automatically).
 */
// needs: jupyter
import { JupyterCodeExecutor, LocalJupyterServer } from "@fenced/executor-jupyter";
import { rawInputCode, reportCalls, wait } from "./support/host-calls.ts";

const python = process.env["FENCED_BENCH_PYTHON"];
await using server = new LocalJupyterServer(python === undefined ? {} : { python });
await using executor = new JupyterCodeExecutor({ server, functions: [wait], maxHostCalls: 1000 });
await executor.start();

async function raw(): Promise<number> {
  const block = { language: "python", code: rawInputCode };
  const { output, exitCode } = await executor.executeCodeBlocks([block], { stdin: "x\n".repeat(201) });
  if (exitCode !== 0) throw new Error(output);
  return Number(output);
}

const goals = { goal: "< 5 ms", sideBySide: "< 200 ms" };
await reportCalls("Host functions in a Jupyter kernel", { executor, raw, ...goals });
