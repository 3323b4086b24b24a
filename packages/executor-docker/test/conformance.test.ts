import { loadComponent, type CodeExecutor } from "@fenced/core";
import { testCodeExecutor, type TestRunner } from "@fenced/executor-testkit";
import { needs } from "@fenced/test-support";
import { describe, it } from "vitest";
import { DockerCommandLineCodeExecutor } from "../src/index.ts";
import { dockerResources } from "./support/docker-cli.ts";
import { hostCommand } from "./support/host-command.ts";
import { nodeImage, pythonImage } from "./support/images.ts";

// Without a supervisor a process that a block leaves running holds the daemon's own pipes, which it closes after two
// seconds; until then it holds up the next block. See the README, "Limits".
const withoutSupervisor: ReadonlySet<string> = new Set([
  "does not touch what an earlier block left running",
  "a server that one block starts, and that logs, is called by the next, and is gone after restart()",
]);
const define: TestRunner["it"] = it;
const patientIt: TestRunner["it"] = (title, options, test) =>
  define(title, options, async (context) => {
    if (withoutSupervisor.has(title)) context.skip("the daemon holds up what comes next, and closes the output");
    await test(context);
  });

describe("Docker Engine", needs("docker"), () => {
  for (const { what, image, runner } of [
    { what: "an image with Python", image: pythonImage, runner: { describe, it } },
    { what: "an image without Python", image: nodeImage, runner: { describe, it: patientIt } },
  ]) {
    testCodeExecutor(runner, {
      name: `DockerCommandLineCodeExecutor, with ${what},`,
      // No case needs a network, and without one a package index is out of reach at once, wherever the tests run.
      create: (options) => new DockerCommandLineCodeExecutor({ image, network: "none", ...options }),
      load: (model) => loadComponent<CodeExecutor>(model, { importModule: () => import("../src/index.ts") }),
      takesWorkDir: true,
      hostCommand: hostCommand(image),
      listResources: dockerResources,
    });
  }
});
