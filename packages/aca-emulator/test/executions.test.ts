import { spawnSync } from "node:child_process";
import { needs } from "@fenced/test-support";
import { describe, expect, it } from "vitest";
import { Client, older } from "./client.ts";

describe("POST executions", needs("python3"), () => {
  it("returns the execution with its stdout, its stderr and the last expression's value", async () => {
    await using client = await Client.open();
    const reply = await client.execute(
      "import sys\nprint('out'); print('err', file=sys.stderr)\n{'a': [1, None, 'ü']}",
    );
    expect(reply.status).toBe(200);
    expect(reply.json).toMatchObject({
      identifier: "session-1",
      executionType: "Synchronous",
      status: "Succeeded",
      result: { stdout: "out\n", stderr: "err\n", executionResult: "{'a': [1, None, 'ü']}" },
    });
    expect(reply.json.result.executionTimeInMilliseconds).toBeTypeOf("number");
    expect(reply.headers.get("operation-id")).toBe(reply.json.id);
    expect(reply.headers.get("operation-location")).toContain(`/executions/${reply.json.id}?`);
  });

  it("keeps variables from call to call, separately for each session", async () => {
    await using client = await Client.open();
    await client.execute("x = 41");
    expect((await client.execute("x + 1")).json.result.executionResult).toBe(42);
    expect((await client.execute("x", {}, { identifier: "session-2" })).json.status).toBe("Failed");
    expect((await client.execute("x", { useEmptyKernel: true })).json.status).toBe("Failed");
  });

  it("reports an exception as Failed, with the traceback", async () => {
    await using client = await Client.open();
    const { json, status } = await client.execute("def f():\n    return 1 / 0\nf()");
    expect(status).toBe(200);
    expect(json.status).toBe("Failed");
    expect(json.error.message).toBe("ZeroDivisionError: division by zero");
    expect(json.result.stderr).toMatch(/line 3, in <module>.*line 2, in f.*ZeroDivisionError/s);
    expect((await client.execute("def f(:")).json.error.message).toMatch(/^SyntaxError/);
  });

  it("captures the output of child processes, up to the requested limit", async () => {
    await using client = await Client.open();
    expect((await client.execute("import os; os.system('echo child; echo problem >&2')")).json.result).toMatchObject({
      stdout: "child\n",
      stderr: "problem\n",
    });
    expect((await client.execute("print('x' * 10000)")).json.result.stdout).toHaveLength(4096);
    expect(
      (await client.execute("print('x' * 10000)", { outputStreamsMaxLength: 100 })).json.result.stdout,
    ).toHaveLength(100);
    expect(
      (await client.execute("print('x' * 10000)", { outputStreamsMaxLength: 20_000 })).json.result.stdout,
    ).toHaveLength(10_001);
  });

  it("returns pictures as base64", async () => {
    await using client = await Client.open();
    const code = "class Picture:\n    def _repr_png_(self): return b'bytes'\nPicture()";
    const picture = { type: "image", format: "png", base64_data: Buffer.from("bytes").toString("base64") };
    expect((await client.execute(code)).json.result.executionResult).toEqual(picture);
    const shown =
      "from IPython.display import Image, display\ndisplay(Image(data=b'bytes', format='png'))\nprint('after')";
    expect((await client.execute(shown)).json.result).toMatchObject({ stdout: "after\n", executionResult: picture });
  });

  it("returns matplotlib figures as pictures", async ({ skip }) => {
    const python = ["python3", "/usr/bin/python3"].find((each) => hasMatplotlib(each));
    if (python === undefined) skip("no Python here has matplotlib");
    await using client = await Client.open({ python: python ?? "python3" });
    const { json } = await client.execute("import matplotlib.pyplot as plt\nplt.plot([1, 2]); plt.show()", {
      timeoutInSeconds: 200,
    });
    expect(json.result.stderr).toBe("");
    const { base64_data: data } = json.result.executionResult as { base64_data: string };
    expect(Buffer.from(data, "base64").subarray(1, 4).toString()).toBe("PNG");
  });

  it("runs code with closed input, outside /mnt/data and without the host's variables", async () => {
    process.env.FENCED_EMULATOR_SECRET = "secret";
    await using client = await Client.open();
    expect((await client.execute("input()")).json.error.message).toMatch(/^EOFError/);
    expect((await client.execute("import os; os.getcwd()")).json.result.executionResult).not.toContain("/mnt/data");
    expect((await client.execute("os.environ.get('FENCED_EMULATOR_SECRET')")).json.result.executionResult).toBeNull();
    delete process.env.FENCED_EMULATOR_SECRET;
  });

  it("ends code at its time limit and keeps the variables", async () => {
    await using client = await Client.open();
    await client.execute("x = 1");
    const { json } = await client.execute("print('so far')\nwhile True: pass", { timeoutInSeconds: 1 });
    expect(json).toMatchObject({
      status: "Failed",
      error: { code: "ExecutionTimeout" },
      result: { stdout: "so far\n" },
    });
    expect((await client.execute("x")).json.result.executionResult).toBe(1);
    const stubborn = "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)\nwhile True: pass";
    expect((await client.execute(stubborn, { timeoutInSeconds: 1 })).json.status).toBe("Failed");
    expect((await client.execute("'alive'")).json.result.executionResult).toBe("'alive'");
  });

  it("survives code that ends its process", async () => {
    await using client = await Client.open();
    expect((await client.execute("import os; os._exit(3)")).json).toMatchObject({
      status: "Failed",
      error: { code: "KernelDied" },
    });
    expect((await client.execute("1 + 1")).json.result.executionResult).toBe(2);
    const forked = "import os\npid = os.fork()\nif pid: os.waitpid(pid, 0)";
    expect((await client.execute(forked)).json.status).toBe("Succeeded");
    expect((await client.execute("2 + 2")).json.result.executionResult).toBe(4);
  });

  it("runs an asynchronous execution in the background, and answers polls", async () => {
    await using client = await Client.open();
    const started = await client.execute("import time; time.sleep(0.5); 'done'", {
      executionType: "Asynchronous",
      timeoutInSeconds: 600,
    });
    expect(started.status).toBe(202);
    expect(started.json.status).toMatch(/NotStarted|Running/);
    const location = started.headers.get("operation-location") ?? "";
    for (;;) {
      const poll = await fetch(location, { headers: { authorization: `Bearer ${client.emulator.token()}` } });
      const execution = (await poll.json()) as { status: string; result?: { executionResult: string } };
      expect(poll.status).toBe(200);
      if (execution.status === "Running" || execution.status === "NotStarted") continue;
      expect(execution).toMatchObject({ status: "Succeeded", result: { executionResult: "'done'" } });
      break;
    }
  });

  it("stores an execution under its operation-id, and rejects a second one with the same id", async () => {
    await using client = await Client.open();
    const headers = { "operation-id": "my-operation" };
    await client.execute("'once'", {}, { headers });
    expect((await client.call("GET", "executions/my-operation")).json.result.executionResult).toBe("'once'");
    expect((await client.execute("'twice'", {}, { headers })).status).toBe(409);
    const unknown = await client.call("GET", "executions/another");
    expect(unknown).toMatchObject({ status: 404, json: { error: { code: "ExecutionNotFound" } } });
  });

  it.for<[string, object]>([
    ["a synchronous execution of more than 220 seconds", { timeoutInSeconds: 221 }],
    ["an unknown execution type", { executionType: "Sometimes" }],
    ["an unknown input type", { codeInputType: "File" }],
    ["missing code", { code: null }],
  ])("rejects %s", async ([, fields]) => {
    await using client = await Client.open();
    const reply = await client.execute("1", fields);
    expect(reply.status).toBe(400);
    expect(reply.json.error).toEqual({ code: expect.any(String), message: expect.any(String) });
  });

  it("requires wrapped bodies in a pool that is configured for them", async () => {
    await using client = await Client.open({ wrappedBodies: true });
    expect(await client.execute("1")).toMatchObject({
      status: 400,
      json: { error: { code: "SessionPropertiesMissing" } },
    });
    const properties = { codeInputType: "Inline", executionType: "Synchronous", code: "6 * 7" };
    const reply = await client.call("POST", "executions", { body: { properties } });
    expect(reply.json.result.executionResult).toBe(42);
  });
});

describe("the older API", needs("python3"), () => {
  it("nests requests and results in `properties`", async () => {
    await using client = await Client.open();
    expect((await client.executeOlder("print('out')\n6 * 7")).json.properties).toMatchObject({
      status: "Success",
      stdout: "out\n",
      stderr: "",
      result: 42,
    });
    expect((await client.executeOlder("1 / 0")).json.properties).toMatchObject({
      status: "Failure",
      stderr: expect.stringContaining("ZeroDivisionError"),
    });
  });

  it("shares no execution paths with the current API", async () => {
    await using client = await Client.open();
    expect((await client.execute("1", {}, { version: older })).status).toBe(404);
    expect((await client.executeOlder("1", { version: "2025-02-02-preview" })).status).toBe(404);
  });
});

describe("other pools", needs("python3", "bash"), () => {
  it("Shell: returns the exit code as the status text", async () => {
    await using client = await Client.open({ poolType: "Shell" });
    const shell = (shellCommand: string) => client.call("POST", "executions", { body: { shellCommand } });
    expect((await shell("echo out; echo err >&2")).json).toMatchObject({
      status: "0",
      result: { stdout: "out\n", stderr: "err\n" },
    });
    expect((await shell("exit 7")).json.status).toBe("7");
  });

  it("NodeLTS: runs JavaScript and keeps variables", async () => {
    await using client = await Client.open({ poolType: "NodeLTS" });
    await client.execute("const x = await Promise.resolve(41)");
    expect((await client.execute("console.log('out'); x + 1")).json.result).toMatchObject({
      stdout: "out\n",
      executionResult: 42,
    });
    expect((await client.execute("missing")).json).toMatchObject({
      status: "Failed",
      error: { message: expect.stringContaining("ReferenceError") },
    });
  });
});

function hasMatplotlib(python: string): boolean {
  return spawnSync(python, ["-c", "import matplotlib"], { stdio: "ignore" }).status === 0;
}

it("refuses a body with more values than the API needs before it parses them", needs("python3"), async () => {
  await using client = await Client.open();
  const reply = await client.call("POST", "executions", { body: Array.from({ length: 1_000_000 }, () => 0) });
  expect(reply).toMatchObject({ status: 413, json: { error: { code: "RequestTooLarge" } } });
});
