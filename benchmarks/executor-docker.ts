/**
 * Measures the overhead of the Docker executor over the daemon's own API: the same programs in a container of the same image,
 * with `exec` create, start and inspect, in the same run. Needs a daemon and the image `FENCED_BENCH_IMAGE` (default
 * `fenced-test:python`, which `scripts/ci/docker.sh up` creates).
 */
// needs: docker
import { spawn } from "node:child_process";
import { once } from "node:events";
import { finished } from "node:stream/promises";
import { DockerCommandLineCodeExecutor } from "@fenced/executor-docker";
import Docker from "dockerode";
import { byTurns, memoryGrowth, report, timed } from "./measure.ts";

const image = process.env["FENCED_BENCH_IMAGE"] ?? "fenced-test:python";
const docker = new Docker();
const create = () => new DockerCommandLineCodeExecutor({ image, timeoutMs: 300_000 });

const gigabyte = `
import os
block = b"x" * 65536
for _ in range(16384):
    left = block
    while left:
        left = left[os.write(1, left):]
`;

async function startRaw(): Promise<Docker.Container> {
  const container = await docker.createContainer({
    Image: image,
    Cmd: ["sleep", "100000"],
    HostConfig: { Init: true },
  });
  await container.start();
  return container;
}

const container = await startRaw();

/** Without a supervisor: one `exec` of the daemon per block. */
async function rawExec(code: string): Promise<void> {
  const exec = await container.exec({ Cmd: ["python3", "-c", code], AttachStdout: true, AttachStderr: true });
  const stream = await exec.start({ hijack: true });
  await finished(stream.resume());
  await exec.inspect();
}

/** The fastest available reader of the daemon's streams. */
async function dockerExec(code: string): Promise<void> {
  const child = spawn("docker", ["exec", container.id, "python3", "-c", code], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  child.stdout.resume();
  await once(child, "close");
}

await using executor = create();

async function run(code: string): Promise<void> {
  const result = await executor.executeCodeBlocks([{ language: "python", code }]);
  if (result.exitCode !== 0) throw new Error(result.output);
}

const stream = async (code: string): Promise<void> => {
  for await (const event of executor.streamCodeBlocks([{ language: "python", code }])) void event;
};

async function rawStart(): Promise<number> {
  const started = performance.now();
  const raw = await startRaw();
  const taken = performance.now() - started;
  await raw.remove({ force: true, v: true });
  return taken;
}

/** Prints the peak memory of the shell's container, in bytes, as the kernel counts it. */
const peakMemory = "cat /sys/fs/cgroup/memory.peak 2>/dev/null || cat /sys/fs/cgroup/memory/memory.max_usage_in_bytes";

async function peakInRaw(): Promise<number> {
  const exec = await container.exec({ Cmd: ["sh", "-c", peakMemory], AttachStdout: true, Tty: true });
  const said = await exec.start({ hijack: true });
  return Number(Buffer.concat(await said.toArray()).toString()) / 1e6;
}

async function peakInOurs(): Promise<number> {
  const { output } = await executor.executeCodeBlocks([{ language: "sh", code: peakMemory }]);
  return Number(output) / 1e6;
}

const stops: number[] = [];

async function start(): Promise<number> {
  const other = create();
  const taken = await timed(() => other.start());
  stops.push(await timed(() => other.stop()));
  return taken;
}

/** 200 blocks over 8 executors at once. */
async function throng(): Promise<number> {
  const executors = Array.from({ length: 8 }, create);
  await Promise.all(executors.map((each) => each.start()));
  const taken = await timed(() =>
    Promise.all(
      executors.map(async (each) => {
        for (let block = 0; block < 25; block += 1) {
          const { exitCode, output } = await each.executeCodeBlocks([{ language: "python", code: `print(${block})` }]);
          if (exitCode !== 0 || output !== `${block}\n`) throw new Error(`block ${block}: ${exitCode} ${output}`);
        }
      }),
    ),
  );
  await Promise.all(executors.map((each) => each.stop()));
  return taken;
}

async function rawSequence(): Promise<number> {
  return timed(async () => {
    for (let block = 0; block < 200; block += 1) await rawExec(`print(${block})`);
  });
}

try {
  const started = await byTurns(8, rawStart, start);
  report("Docker executor against the daemon's API", [
    {
      what: "python block, `print(1)`, against an exec",
      unit: "ms",
      ...(await byTurns(
        40,
        () => timed(() => rawExec("print(1)")),
        () => timed(() => run("print(1)")),
      )),
      goal: "ratio at most 0.3",
    },
    { what: "start, against create and start", unit: "ms", ...started, goal: "at most 60 ms more" },
    { what: "stop", unit: "ms", raw: [], ours: stops, goal: "< 500 ms" },
    {
      what: "200 blocks over 8 executors, against execs in sequence",
      unit: "ms",
      ...(await byTurns(1, rawSequence, throng)),
      goal: "ratio at most 0.25",
    },
    {
      what: "1 GB of output, kept to 1 MiB, against docker exec to nothing",
      unit: "ms",
      ...(await byTurns(
        7,
        () => timed(() => dockerExec(gigabyte)),
        () => timed(() => run(gigabyte)),
      )),
      goal: "ratio at most 1.43",
    },
    {
      what: "1 GB of output as text events",
      unit: "ms",
      ...(await byTurns(
        3,
        () => timed(() => dockerExec(gigabyte)),
        () => timed(() => stream(gigabyte)),
      )),
      goal: "",
    },
    {
      what: "memory growth of this program by 1 GB of output",
      unit: "MB",
      ...(await byTurns(
        2,
        () => memoryGrowth(() => dockerExec(gigabyte)),
        () => memoryGrowth(() => run(gigabyte)),
      )),
      goal: "< 50 MB",
    },
    {
      what: "most memory in the container, after all that",
      unit: "MB",
      raw: [await peakInRaw()],
      ours: [await peakInOurs()],
      goal: "< 50 MB",
    },
  ]);
} finally {
  await container.remove({ force: true, v: true });
}
