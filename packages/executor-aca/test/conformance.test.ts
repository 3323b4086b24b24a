import { join } from "node:path";
import { loadComponent, type CodeExecutor } from "@fenced/core";
import { type ExecutorSubject, testCodeExecutor } from "@fenced/executor-testkit";
import { needs, place, variant } from "@fenced/test-support";
import { bundledCommand } from "@fenced/test-support/bundled-command";
import { afterAll, beforeAll, describe, it } from "vitest";
import { ACADynamicSessionsCodeExecutor } from "../src/index.ts";
import { startEmulatorProcess, type EmulatorProcess } from "./emulator-process.ts";

const hostCommand = await bundledCommand(join(import.meta.dirname, "fixtures/aca-host.ts"));
let emulator: EmulatorProcess;

beforeAll(async () => {
  emulator = await startEmulatorProcess();
  process.env.FENCED_ACA_ENDPOINT = emulator.endpoint;
  process.env.FENCED_ACA_TOKEN = emulator.token;
}, 120_000);

afterAll(async () => {
  await emulator[Symbol.asyncDispose]();
});

/** Describes the executor with a transport to the suite. */
const subject = (transport?: "request"): ExecutorSubject => ({
  name: `ACADynamicSessionsCodeExecutor${transport === undefined ? "" : ` (${transport})`}`,
  create: ({ cleanupTempFiles: _, workDir: __, ...options }) =>
    new ACADynamicSessionsCodeExecutor({
      ...options,
      ...(transport && { transport }),
      poolManagementEndpoint: emulator.endpoint,
      tokenVariable: "FENCED_ACA_TOKEN",
    }),
  load: (model) => loadComponent<CodeExecutor>(model, { importModule: () => import("../src/index.ts") }),
  takesWorkDir: false,
  hostCommand,
  breakPlace: async (executor) => {
    if (!(executor instanceof ACADynamicSessionsCodeExecutor)) return;
    await emulator.expire(executor.sessionId ?? "");
  },
  listResources: () => emulator.sessions(),
  live: transport === undefined,
  asksOnly: true,
});

describe("over the emulator", needs("python3"), () => {
  testCodeExecutor({ describe, it, afterAll }, subject(), place());
  const changed = ["output", "lost session"];
  testCodeExecutor({ describe, it, afterAll }, subject("request"), variant(...changed));
});
