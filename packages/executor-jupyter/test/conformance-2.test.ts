import { testCodeExecutor } from "@fenced/executor-testkit";
import { jupyterPythons, needs, place } from "@fenced/test-support";
import { afterAll, beforeAll, describe, it } from "vitest";
import { LocalJupyterServer } from "../src/index.ts";
import { localSubject } from "./support/jupyter-subject.ts";

describe("on a local server, jupyter_server 2.x", needs("jupyter2"), () => {
  const python = jupyterPythons.jupyter2;
  const server = new LocalJupyterServer({ python });
  beforeAll(() => server.start(), 60_000);
  afterAll(() => server.stop(), 120_000);
  testCodeExecutor({ describe, it, afterAll }, localSubject("JupyterCodeExecutor", server, python), place());
});
