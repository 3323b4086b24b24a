import { spawn } from "node:child_process";
import { once } from "node:events";
import { stat } from "node:fs/promises";
import { needs } from "@fenced/test-support";
import { expect, it } from "vitest";
import { asLine } from "../src/remote/shell-words.ts";
import { bootCommand, supervisorProgram } from "../src/remote/supervisor-program.ts";

it("ends everything on the remote host when this side is silent", needs("bash"), async () => {
  const program = supervisorProgram({
    id: "silent",
    nonce: "nonce",
    workDir: undefined,
    filePrefix: ".fenced-silent-",
    keepFiles: false,
    functionsModule: "functions",
    owner: "owner",
    functionsMarker: ".fenced-functions",
    programs: ["sh"],
    path: undefined,
    silenceSeconds: 1,
  });
  const child = spawn("sh", ["-c", bootCommand], { stdio: ["pipe", "pipe", "inherit"] });
  const ended = once(child, "exit");
  child.stdin.write(asLine(program));
  let said = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    said += text;
  });
  // Its standard input stays open: nothing but the silence tells.
  await ended;
  const directory = /^dir (.*)$/m.exec(said)?.[1] ?? "";
  expect(directory).toMatch(/fenced-remote-\w+$/);
  await expect.poll(() => stat(directory).catch(() => "gone"), { timeout: 10_000 }).toBe("gone");
  child.stdin.destroy();
});
