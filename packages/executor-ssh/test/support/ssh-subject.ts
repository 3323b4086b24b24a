import path from "node:path";
import { type CodeExecutor, connectExecutor, loadComponent } from "@fenced/core";
import { SshCommandLineCodeExecutor } from "@fenced/executor-ssh";
import type { ExecutorSubject } from "@fenced/executor-testkit";
import { bundledCommand } from "@fenced/test-support/bundled-command";
import { host } from "@fenced/test-support/ssh-server";
import type { SshExecutorOptions } from "../../src/index.ts";
import { server } from "./server.ts";

const hostProgram = path.join(import.meta.dirname, "../fixtures/executor-host.ts");
const configFile = server?.configFile ?? "";

/**
 * Executors for the kit on the server of the test file.
 *
 * @param name - what the suite is called.
 * @param settings - options of all of them, also in the kit's host program.
 * @param create - creates one. Default: a plain executor.
 */
export async function sshSubject(
  name: string,
  settings: Partial<SshExecutorOptions> = {},
  create: (options: SshExecutorOptions) => CodeExecutor = (options) => new SshCommandLineCodeExecutor(options),
): Promise<ExecutorSubject> {
  return {
    name,
    create: (options) => create({ host, configFile, ...settings, ...options }),
    load: (model) => loadComponent<CodeExecutor>(model, { importModule: () => import("@fenced/executor-ssh") }),
    connect: (handle, options) =>
      connectExecutor(handle, { ...options, importModule: () => import("@fenced/executor-ssh") }),
    // The remote host of the tests is this one, so what blocks do there is visible here.
    takesWorkDir: true,
    live: true,
    hostCommand: await bundledCommand(hostProgram, configFile, JSON.stringify(settings)),
    breakPlace: async () => {
      for (const pid of (await server?.connections()) ?? []) process.kill(pid, "SIGKILL");
    },
    listResources: async () => (server ? server.remains() : []),
  };
}
