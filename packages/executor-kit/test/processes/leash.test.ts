import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import path from "node:path";
import { bundledCommand } from "@fenced/test-support/bundled-command";
import { describe, expect, it } from "vitest";
import { temporaryDirectory } from "../support/temporary-directory.ts";

describe.skipIf(process.platform === "win32")("a leash", () => {
  it("cleans up after a program that ends before it reads whether a pipe was made", async () => {
    const directory = await temporaryDirectory();
    const fixture = path.join(import.meta.dirname, "../fixtures/dies-before-the-answer.ts");
    const [program, ...words] = await bundledCommand(fixture);
    const host = spawn(program, [...words, directory, path.join(directory, "pipe")], { stdio: "ignore" });
    expect(await once(host, "exit")).toEqual([null, "SIGKILL"]);
    await expect.poll(() => existsSync(directory)).toBe(false);
  });
});
