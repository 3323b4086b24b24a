import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";

const docs = join(import.meta.dirname, "..", "..", "..", "docs");
const page = readFileSync(join(docs, "autogen-cases.md"), "utf8");
const rows = [...page.matchAll(/^\| `(test_\w+)` +\| (?:\[(.+)\]\((.+)\)|none) +\| (.+?) +\|$/gm)];

describe("the page with AutoGen's cases", () => {
  it("names only tests that exist", () => {
    const wrong = rows.filter(([, , title, file]) => {
      if (title === undefined || file === undefined) return false;
      const path = join(docs, file);
      return !existsSync(path) || !readFileSync(path, "utf8").includes(`"${title}"`);
    });
    expect(wrong.map(([row]) => row)).toEqual([]);
    expect(rows.length).toBeGreaterThan(100);
  });

  it("names each case once, with a result", () => {
    const names = rows.map(([, name]) => name);
    expect(names.filter((name, index) => names.indexOf(name) !== index)).toEqual([]);
    expect([...page.matchAll(/^\| `test_/gm)]).toHaveLength(rows.length);
  });
});
