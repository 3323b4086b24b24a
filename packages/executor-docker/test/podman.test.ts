import { loadComponent, type CodeExecutor } from "@fenced/core";
import { testCodeExecutor, type ExecutorSubject } from "@fenced/executor-testkit";
import { needs, variant } from "@fenced/test-support";
import { afterAll, beforeAll, describe, it } from "vitest";
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
    variant("standard input", "stream", "stream that nobody reads", "abort", "life cycle", "files", "leaks"),
  );
});
