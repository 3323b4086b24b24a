import { mkdir, symlink, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import path from "node:path";
import { LocalCommandLineCodeExecutor } from "@fenced/executor-local";
import { needs } from "@fenced/test-support";
import { expect, it } from "vitest";
import { temporaryDirectory } from "./support/temporary-directory.ts";

// Up to Node 22, a synchronous stat of a pipe makes the next look-up of a linked package, as pnpm creates them, return
// the link itself, next to which its dependencies are missing (nodejs/node#51142).
it("the pipes of a block do not break imports through links", needs("bash"), async () => {
  const directory = await temporaryDirectory();
  await mkdir(path.join(directory, "node_modules"));
  for (const name of ["first", "second", "third"]) {
    await mkdir(path.join(directory, name));
    await writeFile(path.join(directory, name, "index.js"), "");
    await symlink(path.join(directory, name), path.join(directory, "node_modules", name));
  }
  const { resolve } = createRequire(path.join(directory, "main.js"));
  expect(resolve("first")).toBe(path.join(directory, "first", "index.js"));
  await using executor = new LocalCommandLineCodeExecutor();
  await executor.start();
  expect(resolve("second")).toBe(path.join(directory, "second", "index.js"));
  await executor.executeCodeBlocks([{ language: "bash", code: "cat" }], { stdin: "in" });
  expect(resolve("third")).toBe(path.join(directory, "third", "index.js"));
});
