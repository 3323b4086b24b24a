import { execFile, spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { promisify } from "node:util";
import { DockerCommandLineCodeExecutor } from "@fenced/executor-docker";
import { needs } from "@fenced/test-support";
import { bundledCommand } from "@fenced/test-support/bundled-command";
import { describe, expect, it, onTestFinished } from "vitest";
import { ExecutorPool } from "../../src/index.ts";
import { nothing } from "../support/local-pool.ts";
import { eventually, failure, sh } from "../support/runs.ts";

const image = "fenced-test:python";
const [program, ...words] = await bundledCommand(join(import.meta.dirname, "../fixtures/pool-host.ts"));

async function docker(...args: readonly string[]): Promise<string> {
  return (await promisify(execFile)("docker", args)).stdout.trim();
}

const containersOf = (label: string) => docker("ps", "--all", "--quiet", "--filter", `label=${label}`);

/** A pool of containers with their own label; a container that is warm has a file in `/tmp`. */
function dockerPool({ min, max }: { readonly min: number; readonly max: number }) {
  const label = `fenced-test-${randomUUID()}`;
  const pool = new ExecutorPool({
    create: ({ onSessionLost }) =>
      new DockerCommandLineCodeExecutor({ image, network: "none", labels: { [label]: "1" }, onSessionLost }),
    warmUp: async (executor) => void (await executor.executeCodeBlocks(sh("echo warm > /tmp/warm"))),
    min,
    max,
  });
  onTestFinished(() => pool.drain({ graceMs: 0 }));
  return { pool, label };
}

describe("a pool of containers", { ...needs("docker"), timeout: 120_000 }, () => {
  it("replaces an idle container that is killed, so that no caller gets it", async () => {
    const { pool, label } = dockerPool({ min: 1, max: 2 });
    await pool.start();
    const killed = await containersOf(label);
    await docker("rm", "--force", killed);
    await eventually(() => expect(pool.counts).not.toMatchObject({ ready: 1 }));
    await using lease = await pool.acquire();
    const { output, stateLost } = await lease.executor.executeCodeBlocks(sh("cat /tmp/warm; hostname"));
    expect({ output, stateLost }).toMatchObject({ output: expect.stringMatching(/^warm\n/), stateLost: false });
    expect(output).not.toContain(killed);
  });

  it("tells the caller that its container was killed, and gives the next caller another", async () => {
    const { pool, label } = dockerPool({ min: 0, max: 1 });
    const lease = await pool.acquire();
    const run = lease.executor.executeCodeBlocks(sh("echo $$; sleep 600"));
    const failed = failure(run);
    await eventually(async () =>
      expect(await docker("top", await containersOf(label), "-eo", "pid,args")).toContain("sleep"),
    );
    await docker("rm", "--force", await containersOf(label));
    expect(await failed).toMatchObject({ code: "backend_unavailable" });
    await lease.release();
    await using next = await pool.acquire();
    expect((await next.executor.executeCodeBlocks(sh("cat /tmp/warm"))).output).toBe("warm\n");
  });

  it("leaves no container after a drain", async () => {
    const { pool, label } = dockerPool({ min: 1, max: 3 });
    const leases = await Promise.all([pool.acquire(), pool.acquire()]);
    await Promise.all(leases.map((lease) => lease.release()));
    void failure(pool.acquire());
    await pool.drain({ graceMs: 0 });
    expect(pool.counts).toEqual(nothing);
    expect(await containersOf(label)).toBe("");
  });

  it.each(["SIGKILL", "exit", "drain"])("leaves no container when its program ends (%s)", async (end) => {
    const label = `fenced-test-${randomUUID()}`;
    const host = spawn(program, [...words, label, image, end], { stdio: ["ignore", "pipe", "inherit"] });
    onTestFinished(() => void host.kill("SIGKILL"));
    const exit = once(host, "exit");
    await once(createInterface(host.stdout), "line");
    if (end === "SIGKILL") host.kill(end);
    // After a drain nothing keeps the program alive.
    await exit;
    await eventually(async () => expect(await containersOf(label)).toBe(""));
  });
});
