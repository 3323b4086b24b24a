/**
 * Measures containers in gVisor against the same executor in `runc`, in the same run. Needs a daemon with the runtime `runsc`, and the
 * image `FENCED_BENCH_IMAGE` (default `fenced-test:python`); `scripts/ci/docker.sh up` provides both.
 */
// needs: docker, gvisor
import { DockerCommandLineCodeExecutor, type DockerExecutorOptions } from "@fenced/executor-docker";
import { byTurns, type Comparison, report, timed } from "./measure.ts";

const image = process.env["FENCED_BENCH_IMAGE"] ?? "fenced-test:python";

function create(runtime: string, options: DockerExecutorOptions = {}): DockerCommandLineCodeExecutor {
  return new DockerCommandLineCodeExecutor({ image, network: "none", timeoutMs: 300_000, runtime, ...options });
}

async function start(runtime: string): Promise<number> {
  await using executor = create(runtime);
  return await timed(() => executor.start());
}

async function block(executor: DockerCommandLineCodeExecutor): Promise<number> {
  return timed(async () => {
    const { exitCode, output } = await executor.executeCodeBlocks([{ language: "python", code: "print(1)" }]);
    if (exitCode !== 0 || output !== "1\n") throw new Error(output);
  });
}

async function blocks(what: string, options: DockerExecutorOptions): Promise<Comparison> {
  await using inRunc = create("runc", options);
  await using inGvisor = create("runsc", options);
  const measured = await byTurns(
    20,
    () => block(inRunc),
    () => block(inGvisor),
  );
  return { what, unit: "ms", ...measured, goal: "none: the price of a kernel" };
}

const started = await byTurns(
  5,
  () => start("runc"),
  () => start("runsc"),
);
report("gVisor against runc, the same executor", [
  { what: "start", unit: "ms", ...started, goal: "none: the price of a kernel" },
  await blocks("python block, `print(1)`", {}),
  await blocks("python block with `warm`", { warm: {} }),
  await blocks("python block with `stateful`", { stateful: true }),
]);
