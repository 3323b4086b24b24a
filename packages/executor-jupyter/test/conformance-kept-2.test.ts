import { testCodeExecutor } from "@fenced/executor-testkit";
import { jupyterPythons, needs } from "@fenced/test-support";
import { afterAll, beforeAll, describe, it } from "vitest";
import { keptSubject } from "./support/kept-subject.ts";
import { PlainServer } from "./support/plain-server.ts";

describe("sessions that outlive their program, jupyter_server 2.x", needs("jupyter2"), () => {
  let server: PlainServer | undefined;
  beforeAll(async () => {
    server = await PlainServer.start(jupyterPythons.jupyter2);
  }, 60_000);
  afterAll(() => server?.[Symbol.asyncDispose](), 60_000);
  const subject = keptSubject(() => {
    if (server) return server;
    throw new Error("the server has not been started");
  });
  testCodeExecutor({ describe, it, afterAll }, subject, { groups: ["session that outlives its program"] });
});
