import { loadComponent, type CodeExecutor } from "@fenced/core";
import { SshCommandLineCodeExecutor } from "@fenced/executor-ssh";
import { testCodeExecutor } from "@fenced/executor-testkit";
import { backend, needs } from "@fenced/test-support";
import { host, SshServer } from "@fenced/test-support/ssh-server";
import { afterAll, describe, it } from "vitest";
import { hostCommand } from "./support/host-command.ts";
import { remains } from "./support/remains.ts";

const server = backend("ssh").available ? await SshServer.start() : undefined;
const configFile = server?.configFile ?? "";

describe("executor-ssh", needs("ssh", "python3", "bash", "node"), () => {
  afterAll(async () => server?.[Symbol.asyncDispose]());

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
      listResources: async () => (server ? remains(server) : []),
    },
  );
});
