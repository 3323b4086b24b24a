import path from "node:path";
import { loadComponent, type CodeExecutor } from "@fenced/core";
import { SshCommandLineCodeExecutor } from "@fenced/executor-ssh";
import { testCodeExecutor } from "@fenced/executor-testkit";
import { needs, place } from "@fenced/test-support";
import { bundledCommand } from "@fenced/test-support/bundled-command";
import { host } from "@fenced/test-support/ssh-server";
import { afterAll, describe, it } from "vitest";
import { server } from "./support/server.ts";

const hostProgram = path.join(import.meta.dirname, "fixtures/executor-host.ts");
const configFile = server?.configFile ?? "";
const hostCommand = await bundledCommand(hostProgram, configFile);

describe("executor-ssh", needs("ssh", "python3", "bash", "node"), () => {
  testCodeExecutor(
    { describe, it, afterAll },
    {
      name: "SshCommandLineCodeExecutor",
      create: (options) => new SshCommandLineCodeExecutor({ host, configFile, ...options }),
      load: (model) => loadComponent<CodeExecutor>(model, { importModule: () => import("@fenced/executor-ssh") }),
      // The remote host of the tests is this one: what blocks do there is seen here.
      takesWorkDir: true,
      live: true,
      hostCommand,
      breakPlace: async () => {
        for (const pid of (await server?.connections()) ?? []) process.kill(pid, "SIGKILL");
      },
      listResources: async () => (server ? server.remains() : []),
    },
    place(),
  );
});
