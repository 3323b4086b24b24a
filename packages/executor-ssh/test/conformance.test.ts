import { loadComponent, type CodeExecutor } from "@fenced/core";
import { SshCommandLineCodeExecutor } from "@fenced/executor-ssh";
import { testCodeExecutor } from "@fenced/executor-testkit";
import { needs, place } from "@fenced/test-support";
import { host } from "@fenced/test-support/ssh-server";
import { describe, it } from "vitest";
import { hostCommand } from "./support/host-command.ts";
import { server } from "./support/server.ts";

const configFile = server?.configFile ?? "";

describe("executor-ssh", needs("ssh", "python3", "bash", "node"), () => {
  testCodeExecutor(
    { describe, it },
    {
      name: "SshCommandLineCodeExecutor",
      create: (options) => new SshCommandLineCodeExecutor({ host, configFile, ...options }),
      load: (model) => loadComponent<CodeExecutor>(model, { importModule: () => import("@fenced/executor-ssh") }),
      // The remote host of the tests is this one: what blocks do there is seen here.
      takesWorkDir: true,
      live: true,
      hostCommand: [...hostCommand("executor-host.ts"), configFile],
      breakPlace: async () => {
        for (const pid of (await server?.connections()) ?? []) process.kill(pid, "SIGKILL");
      },
      listResources: async () => (server ? server.remains() : []),
    },
    place(),
  );
});
