import type { Sandbox } from "@e2b/code-interpreter";
import { needs } from "@fenced/test-support";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type InterpreterClient, startInterpreter } from "../support/interpreter-client.ts";

describe("other languages than Python", needs("python3", "bash"), () => {
  let client: InterpreterClient;
  let sandbox: Sandbox;
  beforeAll(async () => {
    client = await startInterpreter();
    sandbox = client.sandbox;
  });
  afterAll(() => client[Symbol.asyncDispose]());

  it("runs bash in one shell", async () => {
    const language = "bash";
    const first = await sandbox.runCode("x=4; cd /; f() { echo \"$x$1 $GIVEN\"; }; echo 'it''s'", { language });
    expect(first.logs.stdout.join("")).toBe("its\n");
    const { logs } = await sandbox.runCode("f 2; pwd; cat; echo problem >&2", { language, envs: { GIVEN: "it's" } });
    // In as many pieces as they came.
    expect([logs.stdout.join(""), logs.stderr.join("")]).toEqual(["42 it's\n/\n", "problem\n"]);
    expect((await sandbox.runCode("f 1", { language })).logs.stdout.join("")).toBe("41 to all\n");
    expect((await sandbox.runCode("false", { language })).error).toMatchObject({ name: "ExitCode", value: "1" });
    await client.leaveAfter("running", { code: "echo running; sleep 600; echo never", language });
    const { logs: last } = await sandbox.runCode("f 3", { language });
    expect([last.stdout.join(""), last.stderr]).toEqual(["43 to all\n", []]);
    expect((await sandbox.runCode("if", { language })).error).toBeDefined();
    expect((await sandbox.runCode("exit 5", { language })).error).toMatchObject({ name: "ContextRestarted" });
    expect((await sandbox.runCode("echo ${x:-gone}", { language })).logs.stdout.join("")).toBe("gone\n");
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
    expect(imported).toMatchObject({ results: [], executionCount: 3 });
    expect(imported.logs.stdout.join("")).toBe("é\n");
    const env = "[process.env.GIVEN, process.env.OWN].join()";
    expect((await sandbox.runCode(env, { language, envs: { OWN: "own" } })).text).toBe("to all,own");
    expect((await sandbox.runCode(env, { language })).text).toBe("to all,");
    const { error } = await sandbox.runCode("function boom() {\n  throw new TypeError('no');\n}\nboom()", { language });
    expect(error).toMatchObject({ name: "TypeError", value: "no" });
    expect(error?.traceback).toMatch(/at boom \(<cell \d+>:2:9\)\n\s+at <cell \d+>:4:1$/);
    for (const forever of ["for (;;) {}", "await new Promise(() => {})"]) {
      await client.leaveAfter("running", { code: `console.log("running"); ${forever}`, language });
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
