import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { FunctionWithRequirements } from "@fenced/core";
import { needs } from "@fenced/test-support";
import { describe, expect, it } from "vitest";
import { directoryStore } from "../src/index.ts";
import { localExecutor } from "./support/local-executor.ts";
import { temporaryDirectory } from "./support/temporary-directory.ts";

describe("a checkpoint of an executor with functions", needs("node"), () => {
  it("is without their package, and starts another one with the same functions", async () => {
    const directory = await temporaryDirectory();
    const store = directoryStore(join(directory, "store"));
    const source = "function twice(value) {\n  return 2 * value;\n}";
    const functions = [FunctionWithRequirements.fromJSON({ language: "javascript", source })];
    const executor = localExecutor({ functions });
    const block = { language: "javascript", code: 'import { twice } from "functions";\nconsole.log(twice(21));' };
    expect(await executor.executeCodeBlocks([block])).toMatchObject({ exitCode: 0 });
    const { id } = await executor.checkpoint({ store });
    const plain = join(directory, "plain");
    await localExecutor({ workDir: plain, restore: { store, id } }).start();
    expect(await readdir(plain, { recursive: true })).toEqual(["node_modules"]);
    const later = localExecutor({ functions, restore: { store, id } });
    const { output } = await later.executeCodeBlocks([block]);
    expect(output.trim()).toBe("42");
  });
});
