import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { DockerCommandLineCodeExecutor } from "@fenced/executor-docker";
import { needs } from "@fenced/test-support";
import { describe, expect, it, vi } from "vitest";
import { ExecutorPool, ExecutorSessions } from "../../src/index.ts";
import { eventually, sh } from "../support/runs.ts";

async function docker(...words: readonly string[]): Promise<string> {
  return (await promisify(execFile)("docker", words)).stdout.trim();
}

describe("sessions in Docker", needs("docker"), () => {
  it("survive the removal of a container, and report that the state is lost", async () => {
    const containerName = `fenced-test-lost-${process.pid}`;
    await using sessions = new ExecutorSessions({
      create: () => new DockerCommandLineCodeExecutor({ image: "fenced-test:python", network: "none", containerName }),
    });
    await sessions.run("a", sh("echo 1 > /tmp/state"));
    await docker("rm", "--force", containerName);
    const run = () => sessions.run("a", sh("test -e /tmp/state || echo another container"));
    // The first run after the removal may fail; the session continues with the next.
    const { output, stateLost } = await run().catch(run);
    expect(output).toBe("another container\n");
    expect(stateLost).toBe(true);
  });

  it.each(["without a pool", "over a pool"])("%s tell at once that an idle container is gone", async (kind) => {
    const containerName = `fenced-test-idle-${process.pid}`;
    const options = { image: "fenced-test:python", network: "none", containerName } as const;
    const create = () => new DockerCommandLineCodeExecutor(options);
    await using pool = new ExecutorPool({ create, min: 0 });
    const onSessionLost = vi.fn<(key: string, reason: string) => void>();
    await using sessions = new ExecutorSessions({
      create: async (_, signal) => (kind === "over a pool" ? (await pool.acquire({ signal })).executor : create()),
      onSessionLost,
    });
    const executor = sessions.executor("a");
    const heard: string[] = [];
    const stop = executor.onSessionLost?.((reason) => heard.push(reason));
    await executor.executeCodeBlocks(sh("echo kept > note"));
    await docker("rm", "--force", containerName);
    await eventually(() => expect(onSessionLost).toHaveBeenCalledOnce());
    expect(onSessionLost.mock.calls[0]?.[0]).toBe("a");
    expect(heard).toEqual([onSessionLost.mock.calls[0]?.[1]]);
    // The executor repairs itself, and keeps the files.
    expect(await sessions.run("a", sh("cat note"))).toMatchObject({ output: "kept\n", stateLost: true });
    expect(await sessions.run("a", sh("true"))).toMatchObject({ stateLost: false });
    expect(onSessionLost).toHaveBeenCalledOnce();
    stop?.();
  });

  it("leave no container when they are ended while they start", async () => {
    const label = `fenced-test-${process.pid}`;
    const containerName = `${label}-pool`;
    const sessions = new ExecutorSessions({
      create: () => new DockerCommandLineCodeExecutor({ image: "fenced-test:python", network: "none", containerName }),
    });
    const run = sessions.run("a", sh("true")).catch((error: unknown) => error);
    await eventually(async () => expect(await docker("ps", "-aq", "--filter", `name=${containerName}`)).not.toBe(""));
    await sessions.end("a");
    await run;
    expect(await docker("ps", "-aq", "--filter", `name=${containerName}`)).toBe("");
    await sessions.drain();
  });
});
