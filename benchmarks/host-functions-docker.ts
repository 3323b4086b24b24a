/**
 * Measures a host function call in a container without a network, against round trips of the same bytes over the standard streams
 * of `docker exec -i`, both timed by the program itself. Image: `FENCED_BENCH_IMAGE` (default `fenced-test:python`).
 */
// needs: docker
import { spawn } from "node:child_process";
import { once } from "node:events";
import { DockerCommandLineCodeExecutor } from "@fenced/executor-docker";
import { rawPipeCode, reportCalls, wait } from "./support/host-calls.ts";

const image = process.env["FENCED_BENCH_IMAGE"] ?? "fenced-test:python";
await using executor = new DockerCommandLineCodeExecutor({
  image,
  network: "none",
  functions: [wait],
  maxHostCalls: 1000,
});
await executor.start();

async function raw(): Promise<number> {
  const child = spawn("docker", ["exec", "-i", executor.containerName, "python3", "-c", rawPipeCode]);
  child.stdout.on("data", (data) => child.stdin.write(data));
  let text = "";
  child.stderr.on("data", (data) => (text += String(data)));
  await once(child, "close");
  return Number(text);
}

await reportCalls("Host functions in a container without network", { executor, raw, goal: "< 1 ms" });
