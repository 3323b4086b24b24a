import { randomUUID } from "node:crypto";
import { connectExecutor, loadComponent, type CodeExecutor } from "@fenced/core";
import type { ExecutorSubject } from "@fenced/executor-testkit";
import { afterAll, beforeAll } from "vitest";
import { DockerCommandLineCodeExecutor } from "../../src/index.ts";
import { docker, dockerResources } from "./docker-cli.ts";
import { hostCommand } from "./host-command.ts";
import { pythonImage } from "./images.ts";

/**
 * Executors for the kit with an image, on the daemon of this machine. For the `describe` around it.
 *
 * @param image - a unique name, which tells these containers apart from those of tests that run at the same time.
 */
export function dockerSubject(what: string, source: string, image = `${source}-${randomUUID()}`): ExecutorSubject {
  beforeAll(() => docker("tag", source, image));
  afterAll(() => docker("rmi", "--no-prune", image));
  return {
    name: `DockerCommandLineCodeExecutor, ${what},`,
    // No case needs a network, and without one, package indexes are unreachable at once, wherever the tests run.
    create: (options) => new DockerCommandLineCodeExecutor({ image, network: "none", ...options }),
    load: (model) => loadComponent<CodeExecutor>(model, { importModule: () => import("../../src/index.ts") }),
    ...(source === pythonImage && {
      connect: (handle, options) =>
        connectExecutor(handle, { ...options, importModule: () => import("../../src/index.ts") }),
    }),
    takesWorkDir: true,
    takesNetworkPolicy: source === pythonImage,
    hostCommand: hostCommand(image),
    breakPlace: async (executor) => {
      if (executor instanceof DockerCommandLineCodeExecutor) await docker("kill", executor.containerName);
    },
    listResources: () => dockerResources(image),
  };
}
