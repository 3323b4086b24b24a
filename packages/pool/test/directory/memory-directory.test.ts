import { describe } from "vitest";
import { memoryDirectory } from "../../src/index.ts";
import { directoryCases } from "../support/directory-cases.ts";

describe("a directory in memory keeps holds", () => {
  const directory = memoryDirectory();
  directoryCases(() => ({ one: directory, other: directory }));
});
