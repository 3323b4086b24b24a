import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { describe, expect, it } from "vitest";

const program = join(import.meta.dirname, "../src/check-links.ts");

/** Checks a site with these pages. */
function check(pages: Readonly<Record<string, string>>) {
  const folder = mkdtempSync(join(tmpdir(), "fenced-test-"));
  try {
    for (const [file, html] of Object.entries(pages)) {
      mkdirSync(dirname(join(folder, file)), { recursive: true });
      writeFileSync(join(folder, file), html);
    }
    return spawnSync(process.execPath, ["--import", "tsx", program, folder], { encoding: "utf8" });
  } finally {
    rmSync(folder, { recursive: true });
  }
}

describe("check-links", () => {
  it("accepts targets that exist", () => {
    const { status, stdout, stderr } = check({
      "index.html": `<a href="/fenced/guide/">g</a><a href="guide/files#a%20b">f</a><a href="#top" id="top">t</a>
        <a href="https://github.com/fenced/fenced/blob/main/README.md#x">r</a><a href="https://example.org/">e</a>
        <link rel="icon" href="/fenced/icon.svg"><img src="data:image/png;base64,AA==">`,
      "guide/index.html": `<a href="../">up</a>`,
      "guide/files.html": `<h2 id="a b">x</h2>`,
      "icon.svg": "<svg/>",
    });
    expect(stderr).toBe("");
    expect(stdout).toContain("8 links on 3 pages");
    expect(status).toBe(0);
  });

  it("reports missing targets, and resources that are loaded from other sites", () => {
    const { status, stderr } = check({
      "index.html": `<a href="/fenced/gone">a</a><a href="files#gone">b</a><a href="/other/">c</a><img src="gone.png">
        <a href="https://github.com/fenced/fenced/blob/main/gone.ts">d</a><script src="https://cdn.example.org/x.js"></script>`,
      "files.html": `<a href="gone">e</a>`,
    });
    expect(stderr.trim().split("\n").toSorted()).toEqual([
      "files.html: gone: there is no such page",
      "index.html: /fenced/gone: there is no such page",
      "index.html: /other/: it leaves the site",
      "index.html: files#gone: there is no such heading",
      "index.html: gone.png: there is no such file",
      "index.html: https://cdn.example.org/x.js: it is loaded from elsewhere",
      "index.html: https://github.com/fenced/fenced/blob/main/gone.ts: the repository has no such file",
    ]);
    expect(status).toBe(1);
  });
});
