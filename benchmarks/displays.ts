/**
 * Measures for how long a rich output, made as large and as awkward as code can make it, keeps this process from doing anything else:
 * the most processor time between two turns of the event loop, while the output arrives, is saved and is turned into an event for
 * a client. It is processor time so that other programs do not count. Linux only.
 */
// needs: bubblewrap, python3, jupyter
import { readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import type { CodeExecutor } from "@fenced/core";
import { toJson } from "@fenced/core/web";
import { JupyterCodeExecutor, LocalJupyterServer } from "@fenced/executor-jupyter";
import { LocalCommandLineCodeExecutor } from "@fenced/executor-local";
import { WasmCodeExecutor } from "@fenced/executor-wasm";
import { jupyterPythons } from "@fenced/test-support/backends";
import { type Comparison, report } from "./measure.ts";

/** Python expressions for bundles; `names` and `values` are a little below the limits. */
const bundles: Readonly<Record<string, string>> = {
  "an object with 95,000 names": '{"application/json": {"k%dx" % i: 1 for i in range(names)}}',
  "objects with 95,000 names in all": '{"application/json": [{"k%d" % i: 1, "m%d" % i: 2} for i in range(names // 2)]}',
  "390,000 numbers": '{"application/json": [i + 0.5 for i in range(values)]}',
  "390,000 texts": '{"application/json": ["k%dx" % i for i in range(values)]}',
  "390,000 lines": '{"text/plain": ["k%dx\\n" % i for i in range(values)]}',
  "31 MiB of text": '{"text/plain": "x" * size}',
  "31 MiB of escaped text": '{"text/plain": "\\n" * (size // 2)}',
  "31 MiB of text beyond ASCII": '{"text/plain": "\\U0001f600" * (size // 12)}',
  "31 MiB of HTML": '{"text/html": "<b>x</b>" * (size // 8)}',
  "31 MiB of base64 in lines": '{"image/png": "QUJD\\n" * (size // 6)}',
};
const begin = `
names, values, size = 95_000, 390_000, 31 * 1024 * 1024
try:
    from IPython.display import display
    def show(bundle): display(bundle, raw=True)
except ImportError:
    from _fenced_displays import display as show
`;

const executors: Readonly<Record<string, () => CodeExecutor>> = {
  "OS sandbox": () => new LocalCommandLineCodeExecutor({ isolation: "os-sandbox", stateful: true }),
  WebAssembly: () => new WasmCodeExecutor(),
  Jupyter: () => new JupyterCodeExecutor({ server: new LocalJupyterServer({ python: jupyterPythons.jupyter }) }),
};

for (const [name, create] of Object.entries(executors)) {
  await using executor = create();
  await shownBy(executor, "{}");
  const rows: Comparison[] = [];
  for (const [what, bundle] of Object.entries(bundles)) {
    const { stalls, displays } = await shownBy(executor, bundle);
    if (displays !== 1) throw new Error(`${name} did not show ${what}`);
    rows.push({ what, unit: "ms", raw: [], ours: stalls, goal: "200" });
  }
  report(`The longest stall while a display is taken: ${name}`, rows);
}

/** Shows a bundle three times, and measures the longest stall of each. */
async function shownBy(executor: CodeExecutor, bundle: string): Promise<{ stalls: number[]; displays: number }> {
  const stalls: number[] = [];
  let displays = 0;
  for (let round = 0; round < 3; round += 1) {
    globalThis.gc?.();
    await sleep(20);
    displays = 0;
    stalls.push(
      await longestStall(async () => {
        const blocks = [{ language: "python", code: `${begin}show(${bundle})` }];
        for await (const event of executor.streamCodeBlocks(blocks)) {
          await sleep(0);
          if (event.type !== "display") continue;
          displays += 1;
          JSON.stringify(toJson(event));
        }
      }),
    );
  }
  return { stalls, displays };
}

async function longestStall(action: () => Promise<void>): Promise<number> {
  let [longest, before] = [0, threadTime()];
  const look = (): void => {
    const now = threadTime();
    longest = Math.max(longest, now - before);
    before = now;
  };
  const watch = setInterval(look, 1);
  await action();
  look();
  clearInterval(watch);
  return longest;
}

/** Milliseconds for which the main thread has had a processor. */
function threadTime(): number {
  return Number(readFileSync(`/proc/self/task/${process.pid}/schedstat`, "utf8").split(" ")[0]) / 1e6;
}
