import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { HarnessV1SandboxProvider } from "@ai-sdk/harness";
import { HarnessAgent } from "@ai-sdk/harness/agent";
import { InvalidInputError } from "@fenced/core";
import { DockerCommandLineCodeExecutor } from "@fenced/executor-docker";
import { LocalCommandLineCodeExecutor } from "@fenced/executor-local";
import { needs } from "@fenced/test-support";
import { playHost } from "@fenced/test-support/loopback-hosts";
import { describe, expect, it, onTestFinished } from "vitest";
import { harnessSandbox } from "../src/index.ts";
import { shellHarness } from "./support/shell-harness.ts";

process.removeAllListeners("warning");

async function temporary(): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), "fenced-harness-"));
  onTestFinished(() => rm(directory, { recursive: true, force: true }));
  return directory;
}

describe("HarnessAgent", () => {
  it("works in an executor, stops, and resumes in another one with the same files", async () => {
    const root = await temporary();
    const destroyed: string[] = [];
    const sandbox: HarnessV1SandboxProvider = harnessSandbox({
      createExecutor: ({ sessionId }) => new LocalCommandLineCodeExecutor({ workDir: join(root, sessionId) }),
      destroy: async (sessionId) => {
        destroyed.push(sessionId);
        await rm(join(root, sessionId), { recursive: true });
      },
    });
    const agent = new HarnessAgent({ harness: shellHarness, sandbox });
    const first = await agent.createSession({ sessionId: "one" });
    const said = await agent.generate({ session: first, prompt: "echo kept > file.txt; pwd" });
    expect(said.text).toBe(`${join(root, "one", "shell-one")}\n`);
    const resumeFrom = await first.stop();

    const second = await agent.createSession({ sessionId: "one", resumeFrom });
    expect((await agent.generate({ session: second, prompt: "cat file.txt" })).text).toBe("kept\n");
    // The set-up of the harness ran only once.
    expect(await readFile(join(root, "one", ".harness", "log"), "utf8")).toBe("set up\n");
    await second.destroy();
    expect(destroyed).toEqual(["one"]);
  });

  it("works in a container and controls its ports and network", needs("docker"), async () => {
    const port = await playHost();
    const sandbox = harnessSandbox({
      createExecutor: ({ allow }) =>
        new DockerCommandLineCodeExecutor({
          image: "fenced-test:python",
          network: { allow: () => [...allow(), "127.0.0.1"], resolve: async () => ["127.0.0.1"] },
          dockerPorts: [8000],
        }),
    });
    const agent = new HarnessAgent({ harness: shellHarness, sandbox });
    const sandboxSession = await sandbox.createSession();
    const session = await agent.createSession({ sandboxSession });
    const ask = async (command: string) => (await agent.generate({ session, prompt: command })).text;
    const fetchPage = `python3 -c 'from urllib.request import urlopen; print(urlopen("http://a.example:${port}/").read())' 2>&1 | tail -1`;
    expect(await ask(fetchPage)).toContain("403");
    await sandboxSession.setNetworkPolicy({ mode: "custom", allowedHosts: ["a.example"] });
    expect(await ask(fetchPage)).toContain("host of a.example");
    await sandboxSession.setNetworkPolicy({ mode: "deny-all" });
    expect(await ask(fetchPage)).toContain("403");

    const serve = "python3 -u -m http.server --bind 127.0.0.1 8000";
    await sandboxSession.writeTextFile({ path: "page.txt", content: "from the container" });
    const server = await sandboxSession.spawn({ command: serve });
    await server.stdout.getReader().read();
    const { url } = await sandboxSession.getPortEndpoint({ port: 8000 });
    expect(await (await fetch(`${url}/page.txt`)).text()).toBe("from the container");
    expect(sandboxSession.ports).toEqual([8000]);
    await session.destroy();
    await sandboxSession.stop();
    await expect(sandboxSession.run({ command: "true" })).rejects.toThrow("stopped");
  });
});

describe("harnessSandbox", () => {
  it("rejects invalid ids, unsupported calls, failed set-ups and aborted sessions", async () => {
    const provider = harnessSandbox({ createExecutor: () => new LocalCommandLineCodeExecutor() });
    for (const sessionId of ["../x", "-x", "", "a b"]) {
      await expect(provider.createSession({ sessionId })).rejects.toThrow(InvalidInputError);
    }
    const session = await provider.createSession();
    onTestFinished(() => session.stop());
    const refused = [
      () => session.getPortUrl({ port: 80 }),
      () => session.setNetworkPolicy({ mode: "custom", allowedCIDRs: ["10.0.0.0/8"] }),
    ];
    for (const call of refused) await expect(call()).rejects.toThrow(InvalidInputError);
    const onFirstCreate = () => Promise.reject(new Error("no set-up"));
    await expect(provider.createSession({ onFirstCreate })).rejects.toThrow("no set-up");
    await expect(provider.createSession({ abortSignal: AbortSignal.abort(new Error("left")) })).rejects.toThrow("left");
    expect((): unknown => Reflect.apply(harnessSandbox, undefined, [{}])).toThrow("createExecutor");
  });
});
