/**
 * Measures the cost of the Kubernetes executor: a block against the Docker executor's in the same run, with the same image, and
 * a start against the same pod created directly, from its request until the API reports that it runs. Needs the cluster that
 * `scripts/ci/kubernetes.sh up` starts.
 */
// needs: kubernetes
import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { request } from "node:https";
import { setTimeout as sleep } from "node:timers/promises";
import { DockerCommandLineCodeExecutor } from "@fenced/executor-docker";
import { KubernetesCommandLineCodeExecutor } from "@fenced/executor-kubernetes";
import { testKubeconfig } from "@fenced/test-support/backends";
import { byTurns, report, timed } from "./measure.ts";

const image = process.env["FENCED_BENCH_IMAGE"] ?? "fenced-test:python";
const create = () => new KubernetesCommandLineCodeExecutor({ image, kubeconfig: testKubeconfig, timeoutMs: 300_000 });

const kubeconfig = readFileSync(testKubeconfig, "utf8");
const setting = (name: string): string => new RegExp(`${name}: "([^"]+)"`).exec(kubeconfig)?.[1] ?? "";
const ca = readFileSync(setting("certificate-authority"));

/** Asks the API server; resolves with the parsed answer. */
async function ask(method: string, name = "", body?: unknown): Promise<unknown> {
  const url = new URL(`/api/v1/namespaces/default/pods/${name}`, setting("server"));
  const headers = { authorization: `Bearer ${setting("token")}`, "content-type": "application/json" };
  const answer = await new Promise<NodeJS.ReadableStream>((resolve, reject) => {
    const asked = request(url, { method, ca, headers }, resolve).on("error", reject);
    asked.end(body === undefined ? undefined : JSON.stringify(body));
  });
  let text = "";
  for await (const chunk of answer) text += String(chunk);
  return JSON.parse(text);
}

const part = (value: unknown, name: string): unknown => Reflect.get(Object(value), name);

await using executor = create();
await using inDocker = new DockerCommandLineCodeExecutor({ image, timeoutMs: 300_000 });
await Promise.all([executor.start(), inDocker.start()]);
// The node that the scheduler chose is not part of the requested spec.
const spec: unknown = JSON.parse(
  JSON.stringify(part(await ask("GET", executor.podName), "spec"), (name, value: unknown) =>
    name === "nodeName" ? undefined : value,
  ),
);

/** From the request for a pod until the API reports that it runs. */
async function rawStart(): Promise<number> {
  const name = `fenced-bench-${randomUUID()}`;
  const taken = await timed(async () => {
    await ask("POST", "", { metadata: { name }, spec });
    while (part(part(await ask("GET", name), "status"), "phase") !== "Running") await sleep(10);
  });
  await ask("DELETE", `${name}?gracePeriodSeconds=0`);
  return taken;
}

const stops: number[] = [];

async function start(): Promise<number> {
  const other = create();
  const taken = await timed(() => other.start());
  stops.push(await timed(() => other.stop()));
  return taken;
}

async function run(where: typeof executor | typeof inDocker, language: string, code: string): Promise<void> {
  const result = await where.executeCodeBlocks([{ language, code }]);
  if (result.exitCode !== 0) throw new Error(result.output);
}

const blocks = (rounds: number, language: string, code: string) =>
  byTurns(
    rounds,
    () => timed(() => run(inDocker, language, code)),
    () => timed(() => run(executor, language, code)),
  );

const started = await byTurns(8, rawStart, start);
report("Kubernetes executor against the Docker executor, and against a bare pod", [
  {
    what: "python block, `print(1)`, against Docker",
    unit: "ms",
    ...(await blocks(40, "python", "print(1)")),
    goal: "ratio at most 1.3",
  },
  { what: "sh block, `:`, against Docker", unit: "ms", ...(await blocks(40, "sh", ":")), goal: "ratio at most 1.3" },
  {
    what: "100 MB of output, against Docker",
    unit: "ms",
    ...(await blocks(3, "sh", "head -c 104857600 /dev/zero")),
    goal: "",
  },
  { what: "start, against the same pod until it runs", unit: "ms", ...started, goal: "at most 100 ms more" },
  { what: "stop", unit: "ms", raw: [], ours: stops, goal: "< 1000 ms" },
]);
