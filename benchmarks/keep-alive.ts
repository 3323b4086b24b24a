/**
 * Measures what a session costs that outlives its program: the same executor without `keepAliveMs`, in the same run. Needs a daemon and the
 * image `FENCED_BENCH_IMAGE` (default `fenced-test:python`, which `scripts/ci/docker.sh up` creates).
 */
// needs: docker
import { finished } from "node:stream/promises";
import { connectExecutor } from "@fenced/core";
import { DockerCommandLineCodeExecutor } from "@fenced/executor-docker";
import Docker from "dockerode";
import { byTurns, report, timed } from "./measure.ts";

const image = process.env["FENCED_BENCH_IMAGE"] ?? "fenced-test:python";
const docker = new Docker();

function fail(): never {
  throw new Error("There is no handle.");
}

type Runner = Pick<DockerCommandLineCodeExecutor, "executeCodeBlocks">;

async function run(executor: Runner, code: string): Promise<void> {
  const result = await executor.executeCodeBlocks([{ language: "python", code }]);
  if (result.exitCode !== 0) throw new Error(result.output);
}

const output = `
import os
block = b"x" * 65536
for _ in range(1600):
    left = block
    while left:
        left = left[os.write(1, left):]
`;

await using plain = new DockerCommandLineCodeExecutor({ image });
await using kept = new DockerCommandLineCodeExecutor({ image, keepAliveMs: 60_000 });
await using other = new DockerCommandLineCodeExecutor({ image, keepAliveMs: 60_000 });
await other.start();
const handle = other.handle ?? fail();
await other.detach();

const container = await docker.createContainer({ Image: image, Cmd: ["sleep", "100000"], HostConfig: { Init: true } });
await container.start();

/** One `exec` of the daemon, and a block. */
async function execAndBlock(): Promise<void> {
  const exec = await container.exec({ Cmd: ["python3", "-c", "pass"], AttachStdout: true, AttachStderr: true });
  const stream = await exec.start({ hijack: true });
  await finished(stream.resume());
  await exec.inspect();
  await run(plain, "pass");
}

/** Connects to a container that waits, without the time for letting go of it again. */
async function connect(): Promise<number> {
  const started = performance.now();
  const executor = await connectExecutor(handle);
  const taken = performance.now() - started;
  await executor.detach?.();
  return taken;
}

try {
  report("Sessions that outlive their program", [
    {
      what: "python block, `pass`, with keepAliveMs against without",
      unit: "ms",
      ...(await byTurns(
        100,
        () => timed(() => run(plain, "pass")),
        () => timed(() => run(kept, "pass")),
      )),
      goal: "ratio at most 1.05",
    },
    {
      what: "connecting to a waiting container, against a block and an exec",
      unit: "ms",
      ...(await byTurns(20, () => timed(execAndBlock), connect)),
      goal: "ratio at most 1",
    },
    {
      what: "100 MB of output, with keepAliveMs against without",
      unit: "ms",
      ...(await byTurns(
        9,
        () => timed(() => run(plain, output)),
        () => timed(() => run(kept, output)),
      )),
      goal: "",
    },
  ]);
} finally {
  await container.remove({ force: true, v: true });
  const last = await connectExecutor(handle);
  await last.stop();
}
