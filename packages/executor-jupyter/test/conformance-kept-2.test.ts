import { testCodeExecutor } from "@fenced/executor-testkit";
import { jupyterPythons, needs, nightly } from "@fenced/test-support";
import { afterAll, beforeAll, describe, it } from "vitest";
import { keptSubject } from "./support/kept-subject.ts";
import { PlainServer } from "./support/plain-server.ts";

describe("sessions that outlive their program, jupyter_server 2.x", needs("jupyter2"), () => {
  let server: PlainServer | undefined;
  beforeAll(async () => {
    server = await PlainServer.start(jupyterPythons.jupyter2);
  }, 120_000);
  afterAll(() => server?.[Symbol.asyncDispose](), 120_000);
  const running = (): PlainServer => {
    if (server) return server;
    throw new Error("the server has not been started");
  };
  const subject = keptSubject(running);
  testCodeExecutor({ describe, it, afterAll }, subject, { groups: ["session that outlives its program"] });

  // With the option, everything between the executor and the kernel goes another way.
  const way = [
    "output",
    "standard input",
    "stream that nobody reads",
    "timeout",
    "abort",
    "host functions",
    "displays",
  ];
  describe("in another way", nightly, () => {
    testCodeExecutor({ describe, it, afterAll }, keptSubject(running, { keepAliveMs: 120_000 }), {
      groups: [...way, "file streams"],
      cases: "smoke",
    });
  });
});
