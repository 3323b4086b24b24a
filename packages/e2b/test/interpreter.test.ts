import { Sandbox } from "@e2b/code-interpreter";
import { DockerCommandLineCodeExecutor } from "@fenced/executor-docker";
import { needs } from "@fenced/test-support";
import { TimeoutError } from "e2b";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startServer, type TestServer } from "./support/start-server.ts";

describe("the code interpreter", needs("python3", "bash"), () => {
  let server: TestServer;
  let sandbox: Sandbox;
  beforeAll(async () => {
    server = await startServer();
    sandbox = await Sandbox.create("base", { ...server.client, envs: { GIVEN: "to all" } });
  });
  afterAll(() => server[Symbol.asyncDispose]());

  /** What the code interpreter answers, as it is. */
  const request = (path: string, body?: unknown, headers: Record<string, string> = {}): Promise<Response> =>
    fetch(new URL(path, server.url), {
      method: body === undefined ? "GET" : "POST",
      headers: {
        "e2b-sandbox-id": sandbox.sandboxId,
        "e2b-sandbox-port": "49999",
        "e2b-traffic-access-token": sandbox.trafficAccessToken ?? "",
        ...headers,
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });

  /** Breaks the connection of an execution once it has said something. */
  const leaveAfter = async (said: string, body: unknown): Promise<void> => {
    const { body: lines } = await request("/execute", body);
    if (!lines) throw new Error("there is no response");
    let heard = "";
    for await (const piece of lines) {
      heard += Buffer.from(piece).toString();
      if (heard.includes(said)) break;
    }
  };

  it("keeps variables, counts executions, and shows the last value", async () => {
    const first = await sandbox.runCode("x = 41");
    expect(first).toMatchObject({ results: [], executionCount: 1, error: undefined });
    const second = await sandbox.runCode("x += 1; print('ü', x)\nx");
    expect(second).toMatchObject({ text: "42", executionCount: 2, logs: { stdout: ["ü 42\n"], stderr: [] } });
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
    expect(logs.stdout).toEqual(["before\n"]);
    expect((await sandbox.runCode("import sys; sys.exit(3)")).error).toMatchObject({ name: "SystemExit", value: "3" });
  });

  it("sends results in all of their types, without characters of several bytes or empty lines", async () => {
    const code = `
class Shown:
    def _repr_html_(self): return "<b>ü</b>"
    def _repr_png_(self): return b"png"
    def _repr_mimebundle_(self, **_): return None
from IPython.display import display
display(Shown())
print("ü😀")
{"a": [1, float("nan")], "b": Shown()}`;
    const response = await request("/execute", { code });
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
    await leaveAfter("running", { code: "import time; print('running'); time.sleep(600)" });
    expect(await sandbox.runCode("kept")).toMatchObject({ text: "1", logs: { stderr: [] } });
  });

  it("ends code that ignores an interrupt, and says that its variables are lost", async () => {
    const context = await sandbox.createCodeContext();
    const code = "import signal, time; signal.signal(signal.SIGINT, signal.SIG_IGN); print('deaf'); time.sleep(600)";
    await leaveAfter("deaf", { code, context_id: context.id });
    const next = await sandbox.runCode("'time' in globals()", { context });
    expect(next.text).toBe("False");
    expect(next.logs.stderr.join("")).toMatch(/did not end when it was interrupted.*variables are lost/);
    expect((await sandbox.runCode("1", { context })).logs.stderr).toEqual([]);
  });

  it("keeps the variables of code that ends after its second interrupt, and all that it runs next", async () => {
    const context = await sandbox.createCodeContext();
    const code = `import time
kept = 1
for attempt in range(2):
    try: print("waiting", flush=True); time.sleep(600)
    except KeyboardInterrupt: pass
for each in "ab": time.sleep(0.1); print(each, flush=True)`;
    await leaveAfter("waiting", { code, context_id: context.id });
    for (const expected of [1, 2]) {
      const next = await sandbox.runCode(`print("said"); kept`, { context, timeoutMs: 20_000 });
      expect(next).toMatchObject({ text: "1", logs: { stdout: ["said\n"], stderr: [] } });
      expect(next.executionCount).toBe(expected + 1);
    }
  });

  it("ends executions whose programs go on writing", async () => {
    const context = await sandbox.createCodeContext();
    // With the largest pipe, there is always something left to read.
    const code =
      "import fcntl, subprocess; fcntl.fcntl(1, 1031, 1_048_576); program = subprocess.Popen('yes'); 'started'";
    expect((await sandbox.runCode(code, { context, timeoutMs: 20_000 })).text).toBe("started");
    expect((await sandbox.runCode("program.kill(); 1", { context })).text).toBe("1");
  });

  it("goes on with a new interpreter after the end of one", async () => {
    const context = await sandbox.createCodeContext();
    const { error } = await sandbox.runCode("import os; os._exit(7)", { context });
    expect(error).toMatchObject({ name: "ContextRestarted", value: expect.stringMatching(/exit code 7; .*lost/) });
    expect((await sandbox.runCode("1", { context })).text).toBe("1");
    await sandbox.runCode("import os, threading; threading.Timer(0.1, os._exit, [3]).start()", { context });
    await sandbox.commands.run("sleep 0.5");
    const next = await sandbox.runCode("2", { context });
    expect(next.text).toBe("2");
    expect(next.logs.stderr.join("")).toMatch(/exit code 3 after the last execution.*variables are lost/);
  });

  it("withstands code that closes or forges what the interpreter reports", async () => {
    const context = await sandbox.createCodeContext();
    for (const code of [
      "import os; os.closerange(0, 1024)",
      "import os, signal; os.kill(os.getppid(), signal.SIGKILL)",
      "import os\nfor each in range(3, 1024):\n    try: os.write(each, b'\\xff' * 64)\n    except OSError: pass",
    ]) {
      await sandbox.runCode(code, { context });
      // What it did to its interpreter may end this, too.
      await sandbox.runCode("1", { context });
      expect((await sandbox.runCode("1 + 1", { context })).text).toBe("2");
    }
    const closed = await sandbox.runCode("import sys; sys.stdout.close(); sys.stderr.close()", { context });
    expect(closed.error).toBeUndefined();
    expect((await sandbox.runCode("print('again')", { context })).logs.stdout).toEqual(["again\n"]);
  });

  it("leaves out results that are too large or too many", async () => {
    const large = await sandbox.runCode("print('first'); 'x' * 20_000_000");
    expect(large.results).toEqual([]);
    expect(large.logs.stderr.join("")).toMatch(/left out: 200000\d\d bytes/);
    const many = await sandbox.runCode("from IPython.display import display\nfor n in range(1010): display(n)");
    expect(many.results.length).toBe(1000);
    expect(many.logs.stderr.join("")).toMatch(/at most 1000 results.*left out/);
    expect((await sandbox.runCode("1")).text).toBe("1");
  });

  it("carries large output whole and in order", async () => {
    const { logs } = await sandbox.runCode("print('\\n'.join(map(str, range(300_000))))");
    expect(logs.stdout.join("")).toBe(Array.from({ length: 300_000 }, (_, index) => `${index}\n`).join(""));
  });

  it("refuses requests without a token, and those that are not valid", async () => {
    const token = { "e2b-traffic-access-token": "wrong" };
    expect((await request("/contexts", undefined, token)).status).toBe(403);
    expect((await request("/execute", { code: "1" }, token)).status).toBe(403);
    expect((await request("/execute", { code: 1 })).status).toBe(422);
    expect((await request("/execute", { code: "1", language: "cobol" })).status).toBe(500);
    const [context] = await sandbox.listCodeContexts();
    expect((await request("/execute", { code: "1", language: "python", context_id: context?.id })).status).toBe(400);
    expect((await request("/elsewhere")).status).toBe(404);
    expect((await request("/health")).status).toBe(200);
    const { error } = await sandbox.runCode("1", { language: "java" });
    expect(error).toMatchObject({ value: expect.stringMatching(/does not run java; it runs python/) });
  });

  it("tells a client that the sandbox was killed", async () => {
    const other = await Sandbox.create("base", server.client);
    const running = other.runCode("import time; time.sleep(600)").catch((error: unknown) => error);
    await other.runCode("1", { context: await other.createCodeContext() });
    await other.kill();
    expect(await running).toBeInstanceOf(TimeoutError);
  });

  it("runs bash in one shell", async () => {
    const language = "bash";
    const first = await sandbox.runCode("x=4; cd /; f() { echo \"$x$1 $GIVEN\"; }; echo 'it''s'", { language });
    expect(first.logs.stdout.join("")).toBe("its\n");
    const { logs } = await sandbox.runCode("f 2; pwd; cat; echo problem >&2", { language, envs: { GIVEN: "it's" } });
    expect(logs).toEqual({ stdout: ["42 it's\n/\n"], stderr: ["problem\n"] });
    expect((await sandbox.runCode("f 1", { language })).logs.stdout).toEqual(["41 to all\n"]);
    expect((await sandbox.runCode("false", { language })).error).toMatchObject({ name: "ExitCode", value: "1" });
    await leaveAfter("running", { code: "echo running; sleep 600; echo never", language });
    expect((await sandbox.runCode("f 3", { language })).logs).toEqual({ stdout: ["43 to all\n"], stderr: [] });
    expect((await sandbox.runCode("if", { language })).error).toBeDefined();
    expect((await sandbox.runCode("exit 5", { language })).error).toMatchObject({ name: "ContextRestarted" });
    expect((await sandbox.runCode("echo ${x:-gone}", { language })).logs.stdout).toEqual(["gone\n"]);
  });

  it("runs JavaScript, whose declarations are there for the next execution and can be declared again", async () => {
    const language = "js";
    const code = "const a = 1; let { b, c: [d] } = { b: 2, c: [3] }; function f() { return a + b + d; } class C {} f()";
    expect((await sandbox.runCode(code, { language })).text).toBe("6");
    const awaiting = await sandbox.runCode("const a = await Promise.resolve(10);\n[f(), C.name, typeof this]", {
      language,
    });
    expect(awaiting.text).toBe("[ 15, 'C', 'object' ]");
    const imported = await sandbox.runCode("import { basename } from 'node:path'\nconsole.log(basename('/é'))", {
      language,
    });
    expect(imported).toMatchObject({ results: [], logs: { stdout: ["é\n"] }, executionCount: 3 });
    const env = "[process.env.GIVEN, process.env.OWN].join()";
    expect((await sandbox.runCode(env, { language, envs: { OWN: "own" } })).text).toBe("to all,own");
    expect((await sandbox.runCode(env, { language })).text).toBe("to all,");
    const { error } = await sandbox.runCode("function boom() {\n  throw new TypeError('no');\n}\nboom()", { language });
    expect(error).toMatchObject({ name: "TypeError", value: "no" });
    expect(error?.traceback).toMatch(/at boom \(<cell \d+>:2:9\)\n\s+at <cell \d+>:4:1$/);
    for (const forever of ["for (;;) {}", "await new Promise(() => {})"]) {
      await leaveAfter("running", { code: `console.log("running"); ${forever}`, language });
    }
    expect(await sandbox.runCode("a", { language })).toMatchObject({ text: "10", logs: { stderr: [] } });
    expect((await sandbox.runCode("process.exit(4)", { language })).error).toMatchObject({ name: "ContextRestarted" });
    expect((await sandbox.runCode("typeof a", { language })).text).toBe("undefined");
  });

  it("runs TypeScript", async () => {
    const code = "interface X { a: number } enum E { A = 4 }\nconst x: X = await Promise.resolve({ a: E.A });\nx.a";
    expect((await sandbox.runCode(code, { language: "ts" })).text).toBe("4");
    expect((await sandbox.runCode("const y: = 1", { language: "ts" })).error).toMatchObject({ name: "SyntaxError" });
  });
});

describe("the code interpreter in an image with pandas and matplotlib", needs("docker", "analysisImage"), () => {
  let server: TestServer;
  let sandbox: Sandbox;
  beforeAll(async () => {
    const image = "fenced-test:analysis";
    const create = (): DockerCommandLineCodeExecutor =>
      new DockerCommandLineCodeExecutor({ image, workspacePath: "/home/user" });
    server = await startServer({ templates: { base: create } });
    sandbox = await Sandbox.create("base", server.client);
  });
  afterAll(() => server[Symbol.asyncDispose]());

  it("sends the data of tables", async () => {
    const code = `import pandas
table = pandas.DataFrame({"n": [1, 2], "x": [0.5, None], "when": pandas.to_datetime(["2026-01-02", None])})
table`;
    const [table] = (await sandbox.runCode(code)).results;
    expect(table?.data).toEqual({ n: [1, 2], x: [0.5, null], when: ["2026-01-02T00:00:00", null] });
    expect(table?.html).toMatch(/<table/);
    const large = await sandbox.runCode("pandas.DataFrame({'n': range(200_001)})");
    expect(large.results[0]).toMatchObject({ data: undefined, html: expect.stringMatching(/<table/) });
  });

  it("shows figures with their data", async () => {
    const code = `import matplotlib.pyplot as plt, datetime
def shown(draw, columns=1):
    figure, axes = plt.subplots(1, columns)
    draw(axes)
    plt.show()
days = [datetime.date(2026, 1, day) for day in (1, 2)]
shown(lambda axes: (axes.plot(days, [1, float("nan")], label="a"), axes.axhline(1), axes.set_ylabel("speed (m/s)")))
shown(lambda axes: (axes.scatter([1, 2], [10, 100]), axes.set_yscale("log"), axes.set_title("S")))
shown(lambda axes: (axes.bar([0, 1], [3, 4], 0.4, label="g"), axes.bar([0.4, 1.4], [5, 6], 0.4), axes.set_xticks([0.2, 1.2], ["A", "B"])))
shown(lambda axes: (axes.barh(["A", "B"], [3, 4]), axes.set_xlabel("n")))
shown(lambda axes: axes.pie([90, 10], labels=["most", "few"], startangle=90))
shown(lambda axes: axes.boxplot([[1, 2, 3, 4, 30], [5, 6, 7]], patch_artist=True))
shown(lambda axes: axes.imshow([[1, 2]]))
shown(lambda axes: (axes[0].plot([1], [2]), axes[1].scatter([1], ["x"])), 2)`;
    const { results, error } = await sandbox.runCode(code);
    expect(error).toBeUndefined();
    expect(results.every(({ png, text }) => (png ?? "").length > 1000 && text !== undefined)).toBe(true);
    const charts = results.map(({ chart }): unknown => chart);
    const line = {
      label: "a",
      points: [
        ["2026-01-01", 1],
        ["2026-01-02", null],
      ],
    };
    expect(charts).toMatchObject([
      { type: "line", x_scale: "datetime", y_scale: "linear", y_unit: "m/s", title: null, elements: [line] },
      {
        type: "scatter",
        y_scale: "log",
        title: "S",
        elements: [
          {
            points: [
              [1, 10],
              [2, 100],
            ],
          },
        ],
      },
      {
        type: "bar",
        elements: [
          { label: "A", group: "g", value: 3 },
          { label: "B", group: "g", value: 4 },
          { label: "A", group: "Group 1", value: 5 },
          { label: "B", group: "Group 1", value: 6 },
        ],
      },
      {
        type: "bar",
        y_label: "n",
        elements: [
          { label: "A", group: "Group 0", value: 3 },
          { label: "B", value: 4 },
        ],
      },
      {
        type: "pie",
        elements: [
          { label: "most", angle: 324, radius: 1 },
          { label: "few", angle: 36 },
        ],
      },
      {
        type: "box_and_whisker",
        elements: [
          { min: 1, first_quartile: 2, median: 3, third_quartile: 4, max: 4, outliers: [30] },
          { min: 5, median: 6, max: 7, outliers: [] },
        ],
      },
      { type: "unknown", elements: [] },
      { type: "superchart", elements: [{ type: "line" }, { type: "scatter", y_scale: "categorical" }] },
    ]);
  });

  it("shows pictures that code shows or saves, and starts programs with a backend of their own", async () => {
    const code = `from PIL import Image
image = Image.new("RGB", (4, 4))
image.show(); image.save("picture.png")
import subprocess, sys
print(subprocess.run([sys.executable, "-c", "import matplotlib.pyplot"]).returncode)
image`;
    const { results, logs } = await sandbox.runCode(code);
    expect(results.map(({ png, isMainResult }) => [png !== undefined, isMainResult])).toEqual([
      [true, false],
      [true, false],
      [true, true],
    ]);
    expect(logs.stdout).toEqual(["0\n"]);
    const { error } = await sandbox.runCode("1", { language: "js" });
    expect(error).toMatchObject({ value: expect.stringMatching(/cannot run javascript.*Node\.js/) });
  });
});
