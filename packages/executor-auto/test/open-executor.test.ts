import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type CodeExecutor, InvalidInputError, loadComponent } from "@fenced/core";
import { backend, needs } from "@fenced/test-support";
import { machine, machineKinds } from "@fenced/test-support/machines";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { type FenceName, openExecutor } from "../src/index.ts";
import { runNode, silentServer } from "./support.ts";

const image = "fenced-test:python";

/** What `opens.ts` prints. */
interface Opened {
  readonly isolation?: string;
  readonly output?: string;
  readonly fence?: { readonly name: string; readonly reason: string; readonly passedOver: readonly PassedOver[] };
  readonly error?: string;
}

interface PassedOver {
  readonly name: string;
  readonly problem: string;
  readonly remedy: string;
}

/** Opens a fence in a separate program, with these variables. */
async function open(fence: string, options: object, env: Readonly<Record<string, string>>): Promise<Opened> {
  const { stdout, stderr } = await runNode("fixtures/opens.ts", [fence, JSON.stringify(options)], env).outcome;
  expect(stderr).toBe("");
  return JSON.parse(stdout) as Opened;
}

describe("the strongest fence", () => {
  it("is a container if a daemon answers", needs("docker"), async () => {
    await using executor = await openExecutor("auto", { image });
    expect(executor.capabilities.isolation).toBe("container");
    const { kernel } = executor.capabilities;
    const inGvisor = backend("gvisor").available;
    expect(kernel).toBe(inGvisor ? "user-space" : "shared");
    expect(executor.fence).toEqual({
      name: "docker",
      reason: `The code runs in a Docker or Podman container${inGvisor ? " with a kernel in user space" : ""}.`,
      passedOver: [],
    });
  });

  it("is the OS sandbox if no daemon answers", needs("bubblewrap", "python3"), async () => {
    const { isolation, output, fence } = await open("auto", {}, await machine("os-sandbox"));
    expect(isolation).toBe("os-sandbox");
    expect(output).toBe("42 Linux\n");
    expect(fence?.reason).toBe("The code runs in an OS sandbox. Docker was passed over: No Docker daemon answers.");
    const [passedOver] = fence?.passedOver ?? [];
    expect(passedOver).toMatchObject({ name: "docker", remedy: expect.stringContaining("Start Docker or Podman") });
    expect(passedOver?.problem).toContain("DOCKER_HOST: tcp://127.0.0.1:9");
  });

  it("is the OS sandbox if the image is missing and must not be pulled", needs("docker", "bubblewrap"), async () => {
    await using executor = await openExecutor("auto", { image: "fenced-test:missing", pull: "never" });
    expect(executor.capabilities.isolation).toBe("os-sandbox");
    expect(executor.fence.passedOver[0]?.problem).toContain('The daemon has no image "fenced-test:missing"');
  });

  it("is WebAssembly if there is only Node", async () => {
    const { isolation, output, fence } = await open("auto", {}, await machine("wasm"));
    expect(isolation).toBe("wasm");
    expect(output).toBe("42 Emscripten\n");
    expect(fence?.passedOver.map(({ name }) => name)).toEqual(["docker", "os-sandbox"]);
    expect(fence?.passedOver[1]).toMatchObject({
      problem: expect.stringContaining("bubblewrap is not installed"),
      remedy: expect.stringContaining("apt install bubblewrap"),
    });
  });

  it("is an error if nothing works, with a remedy for each fence, and leaves nothing behind", async () => {
    const directory = await mkdtemp(join(tmpdir(), "fenced-auto-"));
    onTestFinished(() => rm(directory, { recursive: true }));
    const env = { ...(await machine("wasm")), TMPDIR: directory };
    const { error } = await open("auto", {}, { ...env, WITHOUT_PACKAGES: "@fenced/executor-wasm" });
    expect(error).toContain("No fence could be opened, and code never runs without one");
    expect(error).toMatch(/ {2}- Docker: No Docker daemon answers\.[^]*Start Docker or Podman/);
    expect(error).toMatch(/ {2}- The OS sandbox: bubblewrap is not installed.*apt install bubblewrap/);
    expect(error).toContain("- WebAssembly: The package @fenced/executor-wasm is not installed. Run: npm install");
    expect((await readdir(directory)).filter((name) => name.startsWith("fenced"))).toEqual([]);
  });

  const withoutPwsh = { ...needs("bubblewrap", "python3"), ...(backend("pwsh").available && { skip: true }) };
  it("leaves nothing behind of a fence that starts but cannot run what is required", withoutPwsh, async () => {
    const directory = await mkdtemp(join(tmpdir(), "fenced-auto-"));
    onTestFinished(() => rm(directory, { recursive: true }));
    vi.stubEnv("TMPDIR", directory);
    onTestFinished(() => void vi.unstubAllEnvs());
    const opening = openExecutor("os-sandbox", { requiredLanguages: ["pwsh"] });
    await expect(opening).rejects.toThrow("The OS sandbox does not support pwsh here");
    expect(await readdir(directory)).toEqual([]);
  });

  it("is one whose package is installed", async () => {
    const missing = { WITHOUT_PACKAGES: "@fenced/executor-docker,@fenced/executor-local" };
    const { isolation, fence } = await open("auto", {}, missing);
    expect(isolation).toBe("wasm");
    expect(fence?.passedOver.map(({ remedy }) => remedy)).toEqual([
      "Run: npm install @fenced/executor-docker",
      "Run: npm install @fenced/executor-local",
    ]);
  });
});

describe("the component of a fence", () => {
  const chosen: readonly (readonly [FenceName, object])[] = [
    ["docker", { image }],
    ["os-sandbox", {}],
    ["wasm", {}],
  ];
  for (const [name, options] of chosen) {
    it(`is dumped as ${name} was asked for, and opens it again`, needs(...machineKinds[name]), async () => {
      await using executor = await openExecutor(name, { ...options, timeoutMs: 9000 });
      const model = executor.dumpComponent();
      expect(model.config).toMatchObject({ ...options, timeoutMs: 9000 });
      await using again = await loadComponent<CodeExecutor>(model);
      expect(again.capabilities.isolation).toBe(executor.capabilities.isolation);
      expect(again.dumpComponent()).toEqual(model);
    });
  }

  it("names a callback of the caller that it would lose", needs("docker"), async () => {
    await using executor = await openExecutor("auto", { image, onPullProgress: () => {} });
    expect(() => executor.dumpComponent()).toThrow("onPullProgress is a function");
  });
});

describe("a fence by name", () => {
  it("is opened without trying others", async () => {
    await using executor = await openExecutor("wasm");
    expect(executor.fence).toEqual({
      name: "wasm",
      reason: "The code runs in an interpreter in WebAssembly.",
      passedOver: [],
    });
    expect(executor.capabilities.isolation).toBe("wasm");
  });

  it("fails with its own reason", async () => {
    const outcome = openExecutor("os-sandbox", { env: await machine("wasm") });
    await expect(outcome).rejects.toThrow(/^bubblewrap is not installed/);
    const other = await open("docker", {}, { WITHOUT_PACKAGES: "@fenced/executor-docker" });
    expect(other.error).toBe(
      "BackendUnavailableError: The package @fenced/executor-docker is not installed. Run: npm install @fenced/executor-docker",
    );
  });
});

describe("options", () => {
  it.each<[object, string]>([
    [{ timeout: 1 }, 'unknown option "timeout". Did you mean "timeoutMs", in milliseconds?'],
    [{ netwrok: "none" }, 'Did you mean "network"?'],
    [{ network: "bridge" }, '"network" is "bridge". It must be "none", "open" or `{ allow: [hosts] }`'],
    [{ network: { allow: ["https://x/"] } }, "must be a host name"],
    [{ memoryBytes: 1 }, "at least 67108864"],
    [{ startTimeoutMs: 0 }, "whole number of milliseconds"],
    [{ requiredLanguages: "python" }, '"requiredLanguages" is a string. It must be an array'],
    [{ docker: "ftp://x" }, "is not the address of a Docker daemon"],
  ])("%j are rejected", async (options, words) => {
    const outcome = openExecutor("auto", options);
    await expect(outcome).rejects.toThrow(words);
    await expect(outcome).rejects.toSatisfy(InvalidInputError.isInstance);
  });

  it("that are only for containers are rejected for other fences", async () => {
    for (const options of [
      { image },
      { docker: "unix:///run/docker.sock" },
      { pull: "never" },
      { pullTimeoutMs: 1 },
    ] as const) {
      for (const fence of ["os-sandbox", "wasm"] as const) {
        const outcome = openExecutor(fence, options);
        await expect(outcome).rejects.toThrow(`is an option for containers, but "${fence}" does not use one`);
        await expect(outcome).rejects.toSatisfy(InvalidInputError.isInstance);
      }
    }
  });

  it("reject a fence that does not exist, and running without one", async () => {
    for (const name of ["podman", "local", "none"]) {
      await expect(openExecutor(name as "auto")).rejects.toThrow(
        `"fence" is "${name}". It must be "auto", "docker", "os-sandbox" or "wasm".`,
      );
    }
  });

  it.each<[object, string]>([
    [{ network: "open" }, "WebAssembly has no network"],
    [{ network: { allow: ["example.com"] } }, "WebAssembly has no network"],
    [{ workDir: "w" }, "WebAssembly keeps files in memory"],
    [{ memoryBytes: 2 ** 33 }, "WebAssembly has at most 4 GiB of memory"],
    [{ requiredLanguages: ["py", "Shell"] }, "WebAssembly does not support Shell here"],
  ])("%j rule out WebAssembly", async (options, words) => {
    await expect(openExecutor("wasm", options)).rejects.toThrow(words);
  });

  it("reach the executor", async () => {
    await using executor = await openExecutor("wasm", {
      env: { COLOUR: "red" },
      timeoutMs: 3000,
      memoryBytes: 2 ** 27,
    });
    const code = "import os\nprint(os.environ['COLOUR'], flush=True)\nwhile True: pass";
    const { output, exitCode } = await executor.executeCodeBlocks([{ language: "python", code }]);
    expect([output, exitCode]).toEqual([expect.stringContaining("red"), 124]);
    expect(executor.dumpComponent().config).toMatchObject({ memoryBytes: 2 ** 27, timeoutMs: 3000 });
  });

  it.each(["docker", "os-sandbox"] as const)(
    "give code in %s the directory but no network",
    needs("docker", "bubblewrap"),
    async (fence) => {
      const workDir = await mkdtemp(join(tmpdir(), "fenced-auto-"));
      onTestFinished(() => rm(workDir, { recursive: true }));
      await using executor = await openExecutor(fence, {
        ...(fence === "docker" ? { image } : {}),
        workDir,
        requiredLanguages: ["sh"],
      });
      const code = "cat /proc/net/dev | grep -c : ; echo here > made";
      const { output } = await executor.executeCodeBlocks([{ language: "sh", code }]);
      expect(output).toBe("1\n"); // the loopback interface
      expect(await readdir(workDir)).toContain("made");
    },
  );
});

describe("a network policy", () => {
  it.each(["docker", "os-sandbox"] as const)("holds in %s", needs("docker", "bubblewrap", "python3"), async (fence) => {
    const network = { allow: ["good.example"], resolve: async () => ["192.0.2.1"] };
    await using executor = await openExecutor(fence, { ...(fence === "docker" ? { image } : {}), network });
    const code = `import urllib.request
try: urllib.request.urlopen("http://evil.example/")
except OSError as error: print(error.read().decode())`;
    const result = await executor.executeCodeBlocks([{ language: "python", code }]);
    expect(result.output).toContain("evil.example is not in this executor's network policy");
    expect(result.network).toMatchObject([{ allowed: false, host: "evil.example" }]);
  });
});

describe("a fence that does not start", () => {
  it("is passed over when its daemon never answers", needs("bubblewrap"), async () => {
    const { port } = await silentServer();
    const docker = `tcp://127.0.0.1:${port}`;
    for (const [options, problem] of [
      [{}, "did not answer within 5 s (ping)"],
      [{ startTimeoutMs: 4000 }, "Docker did not start within 4 s."],
    ] as const) {
      await using executor = await openExecutor("auto", { docker, ...options });
      expect(executor.fence.name).toBe("os-sandbox");
      expect(executor.fence.passedOver[0]?.problem).toContain(problem);
    }
  });

  it("is an error when its image does not arrive in time", needs("docker"), async () => {
    const { port, connected } = await silentServer();
    const options = { image: `127.0.0.1:${port}/python:3`, startTimeoutMs: 8000 };
    await expect(openExecutor("docker", options)).rejects.toThrow("Docker did not start within 8 s.");
    // It was the download that took too long.
    await connected;
  });

  it("is aborted with the caller's reason", needs("docker"), async () => {
    const { port, connected } = await silentServer();
    const aborting = new AbortController();
    const { signal } = aborting;
    const opening = openExecutor("auto", { image: `127.0.0.1:${port}/python:3`, signal });
    await connected;
    aborting.abort(new Error("enough"));
    await expect(opening).rejects.toThrow("enough");
    await expect(openExecutor("auto", { signal })).rejects.toThrow("enough");
  });
});
