import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";

const script = join(import.meta.dirname, "..", "..", "scripts", "check-snippets.mjs");
const example =
  "{\n  // #region run\n  if (a) {\n\n    run();\n  }\n  // #endregion\n}\n// #region run\nend();\n// #endregion\n";
const snippet = "if (a) {\n\n  run();\n}\n\nend();";

/** A repository with one example and a README, checked. */
function check(readme: string, ...options: string[]): { status: number | null; output: string; readme: string } {
  const root = mkdtempSync(join(tmpdir(), "fenced-snippets-"));
  onTestFinished(() => rmSync(root, { recursive: true }));
  const file = join(root, "packages", "core", "README.md");
  for (const [path, text] of [
    [file, readme],
    [join(root, "examples", "run.ts"), example],
  ] as const) {
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, text);
  }
  const { status, stdout, stderr } = spawnSync(process.execPath, [script, root, ...options], { encoding: "utf8" });
  return { status, output: stdout + stderr, readme: readFileSync(file, "utf8") };
}

const fence = (code: string, region = "run"): string =>
  `# Core\n\n<!-- examples/run.ts#${region} -->\n\n\`\`\`ts\n${code}\n\`\`\`\n`;

describe("check-snippets", () => {
  it("accepts a fence that shows its region, and fences in other languages", () => {
    const { status, output } = check(`${fence(snippet)}\n\`\`\`sh\nnpm test\n\`\`\`\n`);
    expect(output).toBe("1 snippets match the examples.\n");
    expect(status).toBe(0);
  });

  it("reports a fence that differs from its region", () => {
    const { status, output } = check(fence("stop();"));
    expect(status).toBe(1);
    expect(output).toContain("packages/core/README.md:5: the text differs from examples/run.ts#run");
  });

  it("reports a fence that names no region, or one that does not exist", () => {
    expect(check("```ts\nrun();\n```\n")).toMatchObject({
      status: 1,
      output: expect.stringContaining("README.md:1: no comment above the fence names a region"),
    });
    expect(check(fence(snippet, "walk"))).toMatchObject({
      status: 1,
      output: expect.stringContaining('there is no region "walk" in examples/run.ts'),
    });
  });

  it("exempts code that is not run if a comment says why", () => {
    expect(check("<!-- not run: a signature -->\n```typescript\nrun(): void\n```\n").status).toBe(0);
    expect(check("```typescript\nrun(): void\n```\n").status).toBe(1);
  });

  it("compares the table of examples with their first comments and their needs", () => {
    const root = mkdtempSync(join(tmpdir(), "fenced-snippets-"));
    onTestFinished(() => rmSync(root, { recursive: true }));
    const readme = join(root, "examples", "README.md");
    const run = (...options: string[]) => spawnSync(process.execPath, [script, root, ...options], { encoding: "utf8" });
    mkdirSync(dirname(readme));
    writeFileSync(readme, "# Examples\n\n<!-- examples -->\n\n<!-- end of examples -->\n");
    writeFileSync(join(root, "examples", "run.ts"), "// Runs.\n// needs: bash, docker\nrun();\n");
    expect(run()).toMatchObject({
      status: 1,
      stderr: expect.stringContaining("the table does not match the examples"),
    });
    expect(run("--fix").status).toBe(0);
    expect(readFileSync(readme, "utf8")).toContain("| [run.ts](run.ts) | Runs.         | bash, docker  |\n\n<!-- end");
    expect(run().status).toBe(0);
    writeFileSync(join(root, "examples", "stop.ts"), "stop();\n");
    expect(run("--fix")).toMatchObject({
      status: 1,
      stderr: expect.stringContaining("the first comment of [stop.ts]"),
    });
  });

  it("writes the regions into the fences", () => {
    const { status, readme } = check(`${fence("stop();\nstop();")}\n${fence("")}`, "--fix");
    expect(status).toBe(0);
    expect(readme).toBe(`${fence(snippet)}\n${fence(snippet)}`);
  });
});
