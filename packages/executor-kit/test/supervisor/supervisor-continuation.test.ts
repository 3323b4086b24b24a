import { spawn } from "node:child_process";
import { once } from "node:events";
import path from "node:path";
import { compileSupervisor, connectSupervisor, supervisorContinuation } from "@fenced/executor-kit/supervisor";
import { needs } from "@fenced/test-support";
import { describe, expect, it, onTestFinished } from "vitest";
import { temporaryDirectory } from "../support/temporary-directory.ts";
import { TextSink } from "../support/text-sink.ts";

/**
 * What a program prints below a supervisor that another Python program became.
 *
 * @param hasSource - false to replace the supervisor's source with comments.
 */
async function printedBelow(compiled: Uint8Array | undefined, hasSource: boolean): Promise<string> {
  const directory = path.join(await temporaryDirectory(), "session");
  const workspace = await temporaryDirectory();
  const { python, program } = supervisorContinuation({ directory, workspace }, compiled);
  const input = Buffer.from(program);
  if (!hasSource) input.fill("#", 10, input.indexOf(0));
  const child = spawn("python3", ["-I", "-S", "-X", "utf8", "-c", `first = 1\n${python}`], { stdio: "pipe" });
  onTestFinished(async () => {
    child.stdin.destroy();
    if (child.exitCode === null && child.signalCode === null) await once(child, "exit");
  });
  child.stdin.write(input);
  const { supervisor } = await connectSupervisor(child);
  const output = new TextSink();
  await supervisor?.run({ argv: ["sh", "-c", "echo below"], env: {} }, output);
  return output.stdout;
}

const searchPath = process.env["PATH"] ?? "";

describe.skipIf(process.platform !== "linux")("a program that becomes a supervisor", needs("python3"), () => {
  it("runs what the same Python has compiled before", async () => {
    const compiled = await compileSupervisor("python3", searchPath);
    expect(await printedBelow(compiled, false)).toBe("below\n");
  });

  it("compiles the program itself without that, or if another Python has compiled it", async () => {
    expect(await printedBelow(undefined, true)).toBe("below\n");
    expect(await printedBelow(Buffer.from("cpython-38 50856176 550d0d0a\0nonsense"), true)).toBe("below\n");
  });

  it("is not compiled by what is not Python", async () => {
    expect(await compileSupervisor("/no/such/python", searchPath)).toBeUndefined();
    expect(await compileSupervisor("false", searchPath)).toBeUndefined();
  });
});
