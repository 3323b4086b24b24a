import { testCodeExecutor } from "@fenced/executor-testkit";
import { backend, jupyterPythons, needs, place, variant } from "@fenced/test-support";
import { afterAll, beforeAll, describe, it } from "vitest";
import { LocalJupyterServer } from "../src/index.ts";
import { localSubject } from "./support/jupyter-subject.ts";

describe("on a local server, jupyter_server 1.x", needs("jupyter"), () => {
  const python = jupyterPythons.jupyter;
  const server = new LocalJupyterServer({ python });
  beforeAll(() => server.start(), 60_000);
  afterAll(() => server.stop(), 120_000);
  testCodeExecutor(
    { describe, it, afterAll },
    localSubject("JupyterCodeExecutor", server, python),
    // If pip reaches no index, there is no other server for the whole suite.
    !backend("jupyter2").available
      ? place()
      : // Its message format and its kernels are older.
        variant("lost session", "displays"),
  );
});
