import { loadComponent, type CodeExecutor } from "@fenced/core";
import { testCodeExecutor } from "@fenced/executor-testkit";
import { backend, needs } from "@fenced/test-support";
import { afterAll, describe, it } from "vitest";
import { DockerCommandLineCodeExecutor } from "../src/index.ts";
import { hostCommand } from "./support/host-command.ts";
import { pythonImage } from "./support/images.ts";
import { startPodman } from "./support/podman-service.ts";

describe("Podman", needs("podman"), async () => {
  if (!backend("podman").available) return;
  const podman = await startPodman();
  afterAll(async () => {
    await podman[Symbol.asyncDispose]();
  });
  const docker = podman.address;

  testCodeExecutor(
    { describe, it },
    {
      name: "DockerCommandLineCodeExecutor, over Podman's API,",
      create: (options) => new DockerCommandLineCodeExecutor({ image: pythonImage, docker, ...options }),
      load: (model) => loadComponent<CodeExecutor>(model, { importModule: () => import("../src/index.ts") }),
      takesWorkDir: true,
      hostCommand: [...hostCommand(pythonImage), docker],
      listResources: () => podman.resources(),
    },
  );
});
