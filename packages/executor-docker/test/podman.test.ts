import { loadComponent, type CodeExecutor } from "@fenced/core";
import { testCodeExecutor, type ExecutorSubject } from "@fenced/executor-testkit";
import { mechanism, needs } from "@fenced/test-support";
import { playHost } from "@fenced/test-support/loopback-hosts";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { DockerCommandLineCodeExecutor } from "../src/index.ts";
import { hostCommand } from "./support/host-command.ts";
import { pythonImage } from "./support/images.ts";
import { startPodman, type PodmanService } from "./support/podman-service.ts";

describe("Podman", needs("podman"), () => {
  let podman: PodmanService;
  beforeAll(async () => {
    podman = await startPodman();
  });
  afterAll(() => podman[Symbol.asyncDispose]());

  testCodeExecutor(
    { describe, it, afterAll },
    {
      name: "DockerCommandLineCodeExecutor, over Podman's API,",
      create: (options) =>
        new DockerCommandLineCodeExecutor({ image: pythonImage, docker: podman.address, ...options }),
      load: (model) => loadComponent<CodeExecutor>(model, { importModule: () => import("../src/index.ts") }),
      takesWorkDir: true,
      get hostCommand(): ExecutorSubject["hostCommand"] {
        return [...hostCommand(pythonImage), podman.address];
      },
      listResources: () => podman.resources(),
    },
    mechanism("abort", "files"),
  );

  it("enforces a network policy", async () => {
    const port = await playHost();
    const network = { allow: ["good.example", "127.0.0.1"], resolve: async () => ["127.0.0.1"] };
    await using executor = new DockerCommandLineCodeExecutor({ image: pythonImage, docker: podman.address, network });
    const code = `import os, urllib.request
print(os.listdir("/sys/class/net"), urllib.request.urlopen("http://good.example:${port}/").status, flush=True)
urllib.request.urlopen("https://evil.example/")
`;
    const { output, network: refused } = await executor.executeCodeBlocks([{ language: "python", code }]);
    expect(output).toMatch(/^\['lo'\] 200\n[^]*403 evil.example is not in this executor's network policy/);
    expect(refused).toMatchObject([{ host: "evil.example", allowed: false }]);
  });
});
