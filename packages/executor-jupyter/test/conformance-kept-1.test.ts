import { testCodeExecutor } from "@fenced/executor-testkit";
import { backend, jupyterPythons, needs, nightly } from "@fenced/test-support";
import { afterAll, beforeAll, describe, it } from "vitest";
import { keptSubject } from "./support/kept-subject.ts";
import { PlainServer } from "./support/plain-server.ts";

// One version is enough for a merge.
const often = backend("jupyter2").available ? nightly : {};

describe("sessions that outlive their program, jupyter_server 1.x", { ...needs("jupyter"), ...often }, () => {
  let server: PlainServer | undefined;
  beforeAll(async () => {
    server = await PlainServer.start(jupyterPythons.jupyter);
  }, 120_000);
  afterAll(() => server?.[Symbol.asyncDispose](), 120_000);
  const subject = keptSubject(() => {
    if (server) return server;
    throw new Error("the server has not been started");
  });
  testCodeExecutor({ describe, it, afterAll }, subject, { groups: ["session that outlives its program"] });
});
