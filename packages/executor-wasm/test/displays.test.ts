import { execFile } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { promisify } from "node:util";
import type { Display } from "@fenced/core";
import { slow } from "@fenced/test-support";
import { describe, expect, it } from "vitest";
import { WasmCodeExecutor } from "../src/index.ts";
import { PackagePlace } from "./fixtures/package-place.ts";
import { wheel } from "./fixtures/wheel.ts";

const place = new PackagePlace();
const minutes = { timeout: 240_000 };
const python = (code: string) => [{ language: "python", code }];

describe("values of Python blocks", minutes, () => {
  it("are shown by IPython's rules", async () => {
    await using executor = new WasmCodeExecutor();
    const run = async (code: string) => {
      const { exitCode, stdout, displays } = await executor.executeCodeBlocks(python(code));
      return { exitCode, stdout, data: displays.map(({ data }) => data) };
    };
    expect(await run("x = 6\nx * 7")).toEqual({ exitCode: 0, stdout: "42\n", data: [] });
    expect(await run("x * 7;")).toEqual({ exitCode: 0, stdout: "", data: [] });
    expect(await run("None")).toEqual({ exitCode: 0, stdout: "", data: [] });
    expect(await run("_")).toMatchObject({ stdout: "42\n" });
    expect(await run("import asyncio\nawait asyncio.sleep(0, 'later')")).toMatchObject({ stdout: "'later'\n" });
    const table = `
class Table:
    def __repr__(self): return "a table"
    def _repr_html_(self): return "<table></table>"
    def _repr_png_(self): return b"\\x89PNG"
Table()`;
    expect(await run(table)).toEqual({
      exitCode: 0,
      stdout: "a table\n",
      data: [
        { "text/plain": "a table", "text/html": "<table></table>", "image/png": new Uint8Array([137, 80, 78, 71]) },
      ],
    });
    const itself = `
from IPython.display import display, HTML
class Itself:
    def _ipython_display_(self): display(HTML("<i>me</i>"))
print("before")
display(Itself(), {"application/json": {"a": 1}, "text/plain": "json"}, 7)
display({"application/json": {"a": 1}}, raw=True)
1 / 0`;
    expect(await run(itself)).toMatchObject({
      exitCode: 1,
      stdout: expect.stringMatching(/^before\nme\n\{.*\}\n7\n\{"a":1\}\n$/),
      data: [{ "text/html": "<i>me</i>" }, {}, { "text/plain": "7" }, { "application/json": { a: 1 } }],
    });
  });

  it("can be updated and cleared", async () => {
    await using executor = new WasmCodeExecutor();
    const code = `
from IPython.display import display, clear_output, Markdown
print("gone")
clear_output(wait=True)
handle = display(Markdown("1 %"), display_id=True)
handle.update(Markdown("100 %"))
print("kept")`;
    const { stdout, displays } = await executor.executeCodeBlocks(python(code));
    expect(displays.map(({ data }) => data["text/markdown"])).toEqual(["100 %"]);
    expect(stdout).toBe("1 %\nkept\n100 %\n");
  });

  it("are saved in outputDir, and forged ones end the interpreter", async () => {
    const outputDir = path.join(place.wheels, "pictures");
    await using executor = new WasmCodeExecutor({ outputDir });
    const big = `from IPython.display import Image\nImage(b"\\x89PNG" + bytes(5_000_000))`;
    const { displays } = await executor.executeCodeBlocks(python(big));
    const [file = ""] = displays.flatMap((display: Display) => display.files);
    expect(path.dirname(file)).toBe(fs.realpathSync(outputDir));
    expect(fs.statSync(file).size).toBe(5_000_004);
    const forged = `import sys\nsys.modules["_fenced"]._ask({"op": "display"}, b"\\xff" * 10)\nprint("after")\nwhile True: pass`;
    expect(await executor.executeCodeBlocks(python(forged))).toMatchObject({
      stateLost: true,
      stderr: expect.stringContaining("A display is too long"),
    });
    expect((await executor.executeCodeBlocks(python("6 * 7"))).output).toBe("42\n");
  });

  it("of packages are shown, too", slow, async () => {
    const text = 'class Chart:\n    def _repr_svg_(self): return "<svg/>"\n    def __repr__(self): return "a chart"\n';
    place.add(wheel({ name: "chart", files: { "chart.py": text } }));
    await using executor = place.open({ wheels: place.wheels, install: ["chart"] });
    const { displays } = await executor.executeCodeBlocks(python("import chart\nchart.Chart()"));
    expect(displays.map(({ data }) => data)).toEqual([{ "text/plain": "a chart", "image/svg+xml": "<svg/>" }]);
  });
});

describe("plots", minutes, () => {
  const wheels = process.env.FENCED_PYODIDE_WHEELS;
  it.skipIf(wheels === undefined)(
    "of matplotlib are displayed (FENCED_PYODIDE_WHEELS: a folder with matplotlib's wheel for Pyodide, and its dependencies)",
    { timeout: 600_000 },
    async () => {
      await using executor = place.open({ wheels: wheels ?? "", install: ["matplotlib"] }, { timeoutMs: 300_000 });
      const code =
        "import matplotlib.pyplot as plt\nplt.plot([1, 2, 3])\nplt.show()\nplt.bar([1, 2], [3, 4])\nprint('end')";
      const { displays, exitCode } = await executor.executeCodeBlocks(python(code));
      expect(exitCode).toBe(0);
      const pictures = displays.map(({ data }) => data["image/png"]);
      expect(pictures).toEqual([expect.any(Uint8Array), expect.any(Uint8Array)]);
    },
  );

  it("are displayed by the same backend in an ordinary Python with matplotlib", async ({ skip }) => {
    const run = promisify(execFile);
    const program = process.env.FENCED_MATPLOTLIB_PYTHON ?? "python3";
    const present = await run(program, ["-c", "import matplotlib"]).catch(() => undefined);
    skip(present === undefined, `${program} has no matplotlib; set FENCED_MATPLOTLIB_PYTHON to one that has it`);
    const { stdout } = await run(program, [
      path.join(import.meta.dirname, "fixtures/native-plots.py"),
      path.join(import.meta.dirname, "../src/child"),
    ]);
    const lines = stdout.split("\n").filter((line) => !line.startsWith("<Figure"));
    expect(lines).toEqual(["1 []", "3 []", "4 True", ""]);
  });
});
