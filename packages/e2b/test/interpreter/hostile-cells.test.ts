import type { Sandbox } from "@e2b/code-interpreter";
import { needs } from "@fenced/test-support";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type InterpreterClient, startInterpreter } from "../support/interpreter-client.ts";

describe("code that misbehaves", needs("python3", "bash"), () => {
  let client: InterpreterClient;
  let sandbox: Sandbox;
  beforeAll(async () => {
    client = await startInterpreter();
    sandbox = client.sandbox;
  });
  afterAll(() => client[Symbol.asyncDispose]());

  it("ends code that ignores an interrupt, and says that its variables are lost", async () => {
    const context = await sandbox.createCodeContext();
    const code = "import signal, time; signal.signal(signal.SIGINT, signal.SIG_IGN); print('deaf'); time.sleep(600)";
    await client.leaveAfter("deaf", { code, context_id: context.id });
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
    await client.leaveAfter("waiting", { code, context_id: context.id });
    for (const expected of [1, 2]) {
      const next = await sandbox.runCode(`print("said"); kept`, { context, timeoutMs: 60_000 });
      expect(next).toMatchObject({ text: "1", logs: { stderr: [] } });
      // Python writes the end of a line by itself.
      expect(next.logs.stdout.join("")).toBe("said\n");
      expect(next.executionCount).toBe(expected + 1);
    }
  });

  it("ends executions whose programs go on writing", async () => {
    const context = await sandbox.createCodeContext();
    // With the largest pipe, there is always something left to read.
    const code =
      "import fcntl, subprocess; fcntl.fcntl(1, 1031, 1_048_576); program = subprocess.Popen('yes'); 'started'";
    expect((await sandbox.runCode(code, { context, timeoutMs: 60_000 })).text).toBe("started");
    expect((await sandbox.runCode("program.kill(); 1", { context })).text).toBe("1");
  });

  it("goes on with a new interpreter after the end of one", async () => {
    const context = await sandbox.createCodeContext();
    const { error } = await sandbox.runCode("import os; os._exit(7)", { context });
    expect(error).toMatchObject({ name: "ContextRestarted", value: expect.stringMatching(/exit code 7; .*lost/) });
    expect((await sandbox.runCode("1", { context })).text).toBe("1");
    const dying = "import os, threading; threading.Timer(0.1, os._exit, [3]).start(); os.getpid()";
    const { text: pid } = await sandbox.runCode(dying, { context });
    // It is gone when its end is known.
    await sandbox.commands.run(`while [ -e /proc/${pid} ]; do sleep 0.05; done`);
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
    expect((await sandbox.runCode("print('again')", { context })).logs.stdout.join("")).toBe("again\n");
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
});
