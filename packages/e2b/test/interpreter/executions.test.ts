import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { Sandbox } from "@e2b/code-interpreter";
import { LocalCommandLineCodeExecutor } from "@fenced/executor-local";
import { needs } from "@fenced/test-support";
import { TimeoutError } from "e2b";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type InterpreterClient, startInterpreter } from "../support/interpreter-client.ts";

describe("the code interpreter", needs("python3", "bash"), () => {
  let client: InterpreterClient;
  let sandbox: Sandbox;
  beforeAll(async () => {
    client = await startInterpreter();
    sandbox = client.sandbox;
  });
  afterAll(() => client[Symbol.asyncDispose]());

  it("keeps variables, counts executions, and shows the last value", async () => {
    const first = await sandbox.runCode("x = 41");
    expect(first).toMatchObject({ results: [], executionCount: 1, error: undefined });
    const second = await sandbox.runCode("x += 1; print('ü', x)\nx");
    expect(second).toMatchObject({ text: "42", executionCount: 2, logs: { stderr: [] } });
    // Python writes the end of a line by itself.
    expect(second.logs.stdout.join("")).toBe("ü 42\n");
    expect((await sandbox.runCode("'text'")).text).toBe("text");
    expect((await sandbox.runCode("import asyncio\nawait asyncio.sleep(0, 'awaited')")).text).toBe("awaited");
    expect((await sandbox.runCode("x;")).results).toEqual([]);
  });

  it("understands what notebooks have besides Python", async () => {
    expect((await sandbox.runCode("\n    if True:\n        y = 7\n    y")).text).toBe("7");
    const { logs } = await sandbox.runCode("%matplotlib inline\nfor each in 'ab':\n    !echo in a shell");
    expect(logs.stdout.join("")).toBe("in a shell\nin a shell\n");
    const error = (await sandbox.runCode("not Python:")).error;
    expect(error).toMatchObject({ name: "SyntaxError" });
  });

  it("reports errors with their traceback, and the end of a program as one", async () => {
    const { error, logs } = await sandbox.runCode("print('before')\ndef broken():\n    1 / 0\nbroken()");
    expect(error).toMatchObject({ name: "ZeroDivisionError", value: "division by zero" });
    expect(error?.traceback).toMatch(/<cell \d+>", line 3, in broken\n\s+1 \/ 0\n/);
    expect(error?.traceback).not.toMatch(/fenced/);
    expect(logs.stdout.join("")).toBe("before\n");
    expect((await sandbox.runCode("import sys; sys.exit(3)")).error).toMatchObject({ name: "SystemExit", value: "3" });
  });

  it("sends results in all of their types, without characters of several bytes or empty lines", async () => {
    const code = `
class Shown:
    def _repr_html_(self): return "<b>ü</b>"
    def _repr_png_(self): return b"png"
    def _repr_mimebundle_(self, **_): return None
import sys
from IPython.display import display
display(Shown())
sys.stdout.write("ü😀\\n")
{"a": [1, float("nan")], "b": Shown()}`;
    const response = await client.request("/execute", { code });
    const text = await response.text();
    expect(text).toMatch(/^[\x20-\x7e\n]*$/);
    const lines = text.split("\n").slice(0, -1);
    const found = lines.map((each): unknown => JSON.parse(each));
    const types = ["number_of_executions", "result", "stdout", "result", "end_of_execution"];
    expect(found).toMatchObject(types.map((type) => ({ type })));
    expect(found[1]).toMatchObject({ is_main_result: false, html: "<b>ü</b>", png: "cG5n", extra: {} });
    expect(found[2]).toMatchObject({ text: "ü😀\n" });
    expect(found[3]).toMatchObject({ is_main_result: true, text: expect.stringContaining("nan") });
    const value = (await sandbox.runCode("{'a': [1, None, 'x'], 'nan': float('nan')}")).results[0];
    expect(value?.json).toEqual({ a: [1, null, "x"], nan: null });
  });

  it("gives each execution its variables, and its context the directory", async () => {
    const code = "import os; [os.environ.get('GIVEN'), os.environ.get('OWN')]";
    const own = await sandbox.runCode(code, { envs: { GIVEN: "changed", OWN: "é'\"$x" } });
    expect(own.results[0]?.json).toEqual(["changed", "é'\"$x"]);
    expect((await sandbox.runCode(code)).results[0]?.json).toEqual(["to all", null]);
    await sandbox.files.makeDir("below");
    const context = await sandbox.createCodeContext({ cwd: "below" });
    expect(context).toMatchObject({ language: "python", cwd: "below" });
    expect((await sandbox.runCode("import os; os.path.basename(os.getcwd())", { context })).text).toBe("below");
    await expect(sandbox.createCodeContext({ cwd: "/missing" })).rejects.toThrow(/500/);
  });

  it("has contexts that are independent, restarted and removed", async () => {
    const context = await sandbox.createCodeContext();
    expect((await sandbox.listCodeContexts()).at(-1)).toEqual(context);
    await sandbox.runCode("only_here = 1", { context });
    expect((await sandbox.runCode("only_here")).error).toMatchObject({ value: "name 'only_here' is not defined" });
    await sandbox.restartCodeContext(context);
    const again = await sandbox.runCode("only_here", { context });
    expect(again).toMatchObject({ executionCount: 1, error: { name: "NameError" } });
    await sandbox.removeCodeContext(context);
    expect((await sandbox.listCodeContexts()).map(({ id }) => id)).not.toContain(context.id);
    await expect(sandbox.runCode("1", { context })).rejects.toThrow(/Context .* not found/);
  });

  it("runs one execution of a context at a time, in order", async () => {
    const context = await sandbox.createCodeContext();
    const code = "import time; n = globals().get('n', 0) + 1; was = n; time.sleep(0.05); [was, n]";
    const found = await Promise.all(Array.from({ length: 5 }, () => sandbox.runCode(code, { context })));
    expect(found.map(({ text }) => text)).toEqual(["[1, 1]", "[2, 2]", "[3, 3]", "[4, 4]", "[5, 5]"]);
    await sandbox.removeCodeContext(context);
  });

  it("interrupts code whose client has gone, and keeps its variables", async () => {
    await sandbox.runCode("kept = 1");
    await client.leaveAfter("running", { code: "import time; print('running'); time.sleep(600)" });
    expect(await sandbox.runCode("kept")).toMatchObject({ text: "1", logs: { stderr: [] } });
  });

  it("refuses requests without a token, and those that are not valid", async () => {
    const token = { "e2b-traffic-access-token": "wrong" };
    expect((await client.request("/contexts", undefined, token)).status).toBe(403);
    expect((await client.request("/execute", { code: "1" }, token)).status).toBe(403);
    expect((await client.request("/execute", { code: 1 })).status).toBe(422);
    expect((await client.request("/execute", { code: "1", language: "cobol" })).status).toBe(500);
    const [context] = await sandbox.listCodeContexts();
    expect((await client.request("/execute", { code: "1", language: "python", context_id: context?.id })).status).toBe(
      400,
    );
    expect((await client.request("/elsewhere")).status).toBe(404);
    expect((await client.request("/health")).status).toBe(200);
    const { error } = await sandbox.runCode("1", { language: "java" });
    expect(error).toMatchObject({ value: expect.stringMatching(/does not run java; it runs python/) });
  });

  it("tells a client that the sandbox was killed", async () => {
    const other = await Sandbox.create("base", client.server.client);
    const running = other.runCode("import time; time.sleep(600)").catch((error: unknown) => error);
    await other.runCode("1", { context: await other.createCodeContext() });
    await other.kill();
    expect(await running).toBeInstanceOf(TimeoutError);
  });

  it("leaves no files, neither in the home directory nor, when it is killed, in that for temporary files", async () => {
    const temporary = await mkdtemp(path.join(tmpdir(), "fenced-test-"));
    try {
      const base = () => new LocalCommandLineCodeExecutor({ warm: {}, env: { TMPDIR: temporary } });
      await using own = await startInterpreter({ templates: { base } });
      expect((await own.sandbox.runCode("import os; os.environ['TMPDIR']")).text).toBe(temporary);
      expect((await own.sandbox.runCode("echo $TMPDIR", { language: "bash" })).logs.stdout.join("")).toBe(
        `${temporary}\n`,
      );
      expect(await own.sandbox.files.list(".")).toEqual([]);
      const running = own.sandbox.runCode("import time; time.sleep(600)").catch((error: unknown) => error);
      await own.sandbox.kill();
      await running;
      expect(await readdir(temporary)).toEqual([]);
    } finally {
      await rm(temporary, { recursive: true, force: true });
    }
  });
});
