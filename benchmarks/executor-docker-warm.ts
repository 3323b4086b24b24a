/**
 * Measures a Python block that is forked from a waiting interpreter (`warm`), against an `exec` of the daemon in a container of
 * the same image, in the same run. Needs a daemon and the images `FENCED_BENCH_IMAGE` (default `fenced-test:python`, which
 * `scripts/ci/docker.sh up` creates) and `FENCED_BENCH_ANALYSIS_IMAGE` (default `fenced-test:analysis`, which
 * `scripts/ci/analysis-image.sh up` creates).
 */
// needs: docker, analysisImage
import { finished } from "node:stream/promises";
import { DockerCommandLineCodeExecutor, type DockerExecutorOptions } from "@fenced/executor-docker";
import Docker from "dockerode";
import { byTurns, report, timed, type Comparison } from "./measure.ts";

const image = process.env["FENCED_BENCH_IMAGE"] ?? "fenced-test:python";
const analysisImage = process.env["FENCED_BENCH_ANALYSIS_IMAGE"] ?? "fenced-test:analysis";
const docker = new Docker();
const rounds = 40;

async function run(executor: DockerCommandLineCodeExecutor, code: string): Promise<string> {
  const result = await executor.executeCodeBlocks([{ language: "python", code }]);
  if (result.exitCode !== 0) throw new Error(result.output);
  return result.output.trim();
}

/** Whether blocks come from the waiting interpreter. */
const isWarm = `
import os
pid = open("/proc/%d/stat" % os.getppid()).read().rpartition(")")[2].split()[1]
print("(waits for blocks)" in open("/proc/%s/cmdline" % pid).read())
`;

/** The interpreter's resident memory, in MB. */
const ownMemory = `
import os
print(int(open("/proc/self/statm").read().split()[1]) * os.sysconf("SC_PAGESIZE") / 1e6)
`;

async function awaitWarm(executor: DockerCommandLineCodeExecutor): Promise<void> {
  const deadline = performance.now() + 60_000;
  while ((await run(executor, isWarm)) !== "True") {
    if (performance.now() > deadline) throw new Error("no interpreter is waiting");
  }
}

/** Calls `use` with one `exec` of the daemon per code, in a container of the image. */
async function withExec<T>(name: string, use: (exec: (code: string) => Promise<void>) => Promise<T>): Promise<T> {
  const container = await docker.createContainer({ Image: name, Cmd: ["sleep", "100000"], HostConfig: { Init: true } });
  await container.start();
  try {
    return await use(async (code) => {
      const exec = await container.exec({ Cmd: ["python3", "-c", code], AttachStdout: true, AttachStderr: true });
      await finished((await exec.start({ hijack: true })).resume());
      await exec.inspect();
    });
  } finally {
    await container.remove({ force: true, v: true });
  }
}

async function compare(
  options: DockerExecutorOptions & { readonly image: string },
  code: string,
): Promise<{ blocks: Pick<Comparison, "raw" | "ours">; memory: number }> {
  return withExec(options.image, async (exec) => {
    await using executor = new DockerCommandLineCodeExecutor({ warm: {}, ...options });
    await awaitWarm(executor);
    const blocks = await byTurns(
      rounds,
      () => timed(() => exec(code)),
      () => timed(() => run(executor, code)),
    );
    return { blocks, memory: Number(await run(executor, ownMemory)) };
  });
}

/** 200 execs in sequence, and 200 blocks over 8 executors at once. */
async function throng(options: DockerExecutorOptions): Promise<Pick<Comparison, "raw" | "ours">> {
  const executors = Array.from({ length: 8 }, () => new DockerCommandLineCodeExecutor({ image, ...options }));
  try {
    await Promise.all(executors.map((each) => (options.stateful === true ? each.start() : awaitWarm(each))));
    return await withExec(image, async (exec) =>
      byTurns(
        3,
        () =>
          timed(async () => {
            for (let block = 0; block < 200; block += 1) await exec(`print(${block})`);
          }),
        () =>
          timed(() =>
            Promise.all(
              executors.map(async (executor) => {
                for (let block = 0; block < 25; block += 1) {
                  const output = await run(executor, `print(${block})`);
                  if (output !== String(block)) throw new Error(`block ${block}: ${output}`);
                }
              }),
            ),
          ),
      ),
    );
  } finally {
    await Promise.all(executors.map((executor) => executor.stop()));
  }
}

/** From the end of `start()` to the end of the first block. */
async function firstBlock(warm: DockerExecutorOptions["warm"]): Promise<number> {
  await using executor = new DockerCommandLineCodeExecutor({ image, ...(warm === undefined ? {} : { warm }) });
  await executor.start();
  return await timed(() => run(executor, "print(1)"));
}

async function starts(warm: DockerExecutorOptions["warm"]): Promise<number> {
  await using executor = new DockerCommandLineCodeExecutor({ image, ...(warm === undefined ? {} : { warm }) });
  return await timed(() => executor.start());
}

const plain = await compare({ image }, "print(1)");
const pandas = await compare(
  { image: analysisImage, warm: { preload: ["numpy", "pandas"] } },
  "import pandas\nprint(pandas.DataFrame({'x': [1, 2]}).x.sum())",
);
const rows: Omit<Comparison, "unit">[] = [
  { what: "python block, `print(1)`, against an exec", ...plain.blocks, goal: "at most 5 ms, ratio at most 0.1" },
  { what: "block that imports preloaded pandas, against an exec", ...pandas.blocks, goal: "at most 15 ms" },
  {
    what: "200 blocks over 8 executors, against execs in sequence",
    ...(await throng({ warm: {} })),
    goal: "ratio at most 0.05",
  },
  { what: "the same, stateful", ...(await throng({ stateful: true })), goal: "ratio at most 0.05" },
  {
    what: "first block after start, against the same cold",
    ...(await byTurns(
      6,
      () => firstBlock(undefined),
      () => firstBlock({}),
    )),
    goal: "",
  },
  {
    what: "start, against the same cold",
    ...(await byTurns(
      6,
      () => starts(undefined),
      () => starts({}),
    )),
    goal: "",
  },
];
report("Docker executor with warm Python", [
  ...rows.map((row): Comparison => ({ ...row, unit: "ms" })),
  { what: "memory of a forked block that does nothing", unit: "MB", raw: [], ours: [plain.memory], goal: "" },
  { what: "the same with pandas preloaded", unit: "MB", raw: [], ours: [pandas.memory], goal: "" },
]);
