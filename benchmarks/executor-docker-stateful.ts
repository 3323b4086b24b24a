/**
 * Measures a block in a stateful session (`stateful`), against an `exec` of the daemon in a container of the same image, and a
 * fork of such a session, against the start of another executor, in the same run. Needs a daemon and the image
 * `FENCED_BENCH_IMAGE` (default `fenced-test:python`, which `scripts/ci/docker.sh up` creates).
 */
// needs: docker
import { finished } from "node:stream/promises";
import type { CodeExecutor } from "@fenced/core";
import { DockerCommandLineCodeExecutor } from "@fenced/executor-docker";
import Docker from "dockerode";
import { byTurns, report, timed } from "./measure.ts";

const image = process.env["FENCED_BENCH_IMAGE"] ?? "fenced-test:python";
const rounds = 40;
const megabytes = 200;

async function run(executor: CodeExecutor, code: string): Promise<string> {
  const result = await executor.executeCodeBlocks([{ language: "python", code }]);
  if (result.exitCode !== 0) throw new Error(result.output);
  return result.output.trim();
}

function create(): DockerCommandLineCodeExecutor {
  return new DockerCommandLineCodeExecutor({ image, network: "none", stateful: true });
}

/** Disposes of the executor outside the measured time. */
async function timedStart(make: () => Promise<CodeExecutor>): Promise<number> {
  let made: CodeExecutor | undefined;
  const took = await timed(async () => {
    made = await make();
  });
  await made?.[Symbol.asyncDispose]();
  return took;
}

async function started(): Promise<CodeExecutor> {
  const executor = create();
  await executor.start();
  return executor;
}

const container = await new Docker().createContainer({
  Image: image,
  Cmd: ["sleep", "100000"],
  HostConfig: { Init: true },
});
await container.start();
try {
  await using executor = create();
  await executor.start();
  const exec = async (): Promise<void> => {
    const made = await container.exec({ Cmd: ["python3", "-c", "print(1)"], AttachStdout: true, AttachStderr: true });
    await finished((await made.start({ hijack: true })).resume());
    await made.inspect();
  };
  const blocks = await byTurns(
    rounds,
    () => timed(exec),
    () => timed(() => run(executor, "print(1)")),
  );
  const forks = await byTurns(
    10,
    () => timedStart(started),
    () => timedStart(() => executor.fork()),
  );
  const memory = "print(int(open('/proc/self/statm').read().split()[1]) * 4096 / 1e6)";
  const own = Number(await run(executor, memory));
  await run(executor, `data = bytearray(${megabytes} * 10**6)`);
  const large = await byTurns(
    10,
    () => timedStart(started),
    () => timedStart(() => executor.fork()),
  );
  const replaced = await byTurns(
    6,
    async () => timedStart(started),
    async () => {
      await executor.executeCodeBlocks([{ language: "python", code: "import os; os._exit(1)" }]);
      return timed(() => run(executor, "print(1)"));
    },
  );
  report("Docker executor with a stateful session", [
    { what: "python block, `print(1)`, against an exec", unit: "ms", ...blocks, goal: "at most 5 ms" },
    { what: "fork, against the start of an executor", unit: "ms", ...forks, goal: "milliseconds" },
    { what: `the same with ${megabytes} MB of variables`, unit: "ms", ...large, goal: "" },
    { what: "first block after a crash, against the start of an executor", unit: "ms", ...replaced, goal: "" },
    { what: "memory of a session's interpreter", unit: "MB", raw: [], ours: [own], goal: "" },
  ]);
} finally {
  await container.remove({ force: true, v: true });
}
