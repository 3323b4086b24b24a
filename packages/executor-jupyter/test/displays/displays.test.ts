import { mkdtemp, readdir, readFile, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import type { CodeResult, Display, ExecutionEvent } from "@fenced/core";
import { needs } from "@fenced/test-support";
import { describe, expect, it, onTestFinished } from "vitest";
import type { JupyterCodeExecutor } from "../../src/index.ts";
import { anyVersion, sharedServer } from "../support/local-server.ts";
import { python } from "../support/python.ts";

const patience = { timeout: 120_000 };
const bytes = [0, 1, 2, 250, 255];
const base64 = Buffer.from(bytes).toString("base64");

const show = (bundle: object) =>
  python(
    `from IPython.display import display\ndisplay(__import__("json").loads(${JSON.stringify(JSON.stringify(bundle))}), raw=True)`,
  );

describe.each(anyVersion)("rich outputs (%s)", (version) => {
  describe("of a kernel", needs(version), () => {
    const { executor: create, shared } = sharedServer(version);

    const run = async (executor: JupyterCodeExecutor, ...code: string[]): Promise<CodeResult> => {
      const result = await executor.executeCodeBlocks(code.map(python));
      expect(result).toMatchObject({ exitCode: 0, timedOut: false });
      return result;
    };

    it.each([
      ["image/png", "png"],
      ["image/jpeg", "jpg"],
      ["image/gif", "gif"],
      ["application/pdf", "pdf"],
    ])("contain binary data as bytes, and save it in a file: %s", patience, async (type, ending) => {
      const executor = shared();
      const { displays } = await executor.executeCodeBlocks([show({ [type]: base64, "text/plain": "<it>" })]);
      const [display] = displays;
      expect(display?.data).toEqual({ [type]: new Uint8Array(bytes), "text/plain": "<it>" });
      expect(display?.files.map((file) => path.extname(file))).toEqual([`.${ending}`]);
      expect([...(await readFile(display?.files[0] ?? ""))]).toEqual(bytes);
    });

    it.each([
      ["image/svg+xml", "<svg xmlns='http://www.w3.org/2000/svg'/>", ".svg"],
      ["text/html", "<b>grüße</b>", ".html"],
      ["text/latex", "$x^2$", ".tex"],
      ["text/markdown", "# title", ".md"],
      ["application/json", { a: [1, null, "ü"] }, ".json"],
      ["application/vnd.vega.v5+json", { $schema: "vega" }, ".json"],
      ["application/vnd.vegalite.v5+json", { mark: "bar" }, ".json"],
      ["application/vnd.plotly.v1+json", { data: [], layout: {} }, ".json"],
    ])("contain text and JSON as they are, and save them in a file: %s", patience, async (type, content, ending) => {
      const executor = shared();
      const { displays } = await executor.executeCodeBlocks([show({ [type]: content })]);
      expect(displays[0]?.data).toEqual({ [type]: content });
      const [file = ""] = displays[0]?.files ?? [];
      expect(file.endsWith(ending)).toBe(true);
      const text = await readFile(file, "utf8");
      expect(typeof content === "string" ? text : JSON.parse(text)).toEqual(content);
    });

    it("show their text in the output, in order with printed text", patience, async () => {
      const executor = shared();
      const result = await run(
        executor,
        `from IPython.display import display, Markdown
print("one")
display({"text/plain": "two"}, raw=True)
print("three")
display({"text/markdown": "*four*"}, raw=True)
"five"`,
      );
      expect(result.output).toBe("one\ntwo\nthree\n*four*\n'five'\n");
      expect(result.displays.map(({ data }) => Object.keys(data))).toEqual([
        ["text/plain"],
        ["text/markdown"],
        ["text/plain"],
      ]);
      expect(result.displays.flatMap(({ files }) => files)).toHaveLength(1);
    });

    it("and values become text that can be read, or a name", patience, async () => {
      const executor = shared();
      const code = `from IPython.display import HTML, JSON, Latex, Markdown, SVG, display
display(Markdown("The mean is **4.2**"), Latex("$x^2$"), JSON({"mean": 4.2}), SVG("<svg><text>May</text></svg>"))
display(HTML("<table><tr><td>Oslo</td><td>7</td></tr></table>"))
display({"application/vnd.plotly.v1+json": {"data": [], "layout": {"title": {"text": "Sales"}}}}, raw=True)
class Table:
    def _repr_html_(self): return "<p>Bergen</p>"
Table()`;
      const { output } = await run(executor, code);
      expect(output.split("\n")).toEqual([
        "The mean is **4.2**",
        "$x^2$",
        '{"mean":4.2}',
        "[SVG image: May]",
        "Oslo | 7",
        "[Plotly plot: Sales]",
        "Bergen",
        "",
      ]);
    });

    it("that are updated are printed as they were first and as they are last", patience, async () => {
      const executor = shared();
      const code = `from IPython.display import display
handle = display({"text/plain": "0 %"}, raw=True, display_id="progress")
for step in range(1, 101): handle.update({"text/plain": f"{step} %"}, raw=True)
print("ready")`;
      expect((await run(executor, code)).output).toBe("0 %\nready\n100 %\n");
    });

    it("include help, and code that a notebook would put in its next cell", patience, async () => {
      const executor = shared();
      const { output } = await run(executor, 'def area(r):\n    "The area of a circle."\narea?');
      expect(output).toContain("The area of a circle.");
      expect(output).not.toContain("\u001B");
      expect((await run(executor, "get_ipython().set_next_input('x = 1')")).output).toBe("x = 1\n");
    });

    it("can be updated: the result has the last state, in the first one's place", patience, async () => {
      const executor = shared();
      const code = `from IPython.display import display
handle = display({"text/html": "1"}, raw=True, display_id="bar")
display({"text/html": "other"}, raw=True)
for step in "23": handle.update({"text/html": step}, raw=True)`;
      const events: ExecutionEvent[] = [];
      for await (const event of executor.streamCodeBlocks([python(code)])) events.push(event);
      const shown = events.filter((event) => event.type === "display").map(({ display }) => display.data["text/html"]);
      expect(shown).toEqual(["1", "other", "2", "3"]);
      const end = events.at(-1);
      const displays: readonly Display[] = end?.type === "result" ? end.result.displays : [];
      expect(displays.map(({ data }) => data["text/html"])).toEqual(["3", "other"]);
      expect(await readFile(displays[0]?.files[0] ?? "", "utf8")).toBe("3");
    });

    it("can be updated by a later block", patience, async () => {
      const executor = shared();
      await run(
        executor,
        `from IPython.display import display, update_display\n_ = display({"text/html": "1"}, raw=True, display_id="bar")`,
      );
      const { displays } = await run(executor, `update_display({"text/html": "2"}, raw=True, display_id="bar")`);
      expect(displays.map(({ data }) => data["text/html"])).toEqual(["2"]);
    });

    it("and text can be cleared, at once or when the next output comes", patience, async () => {
      const executor = shared();
      const code = `from IPython.display import clear_output, display
print("gone", flush=True)
display({"text/html": "gone"}, raw=True)
clear_output()
print("also gone", flush=True)
clear_output(wait=True)
print("kept")
clear_output(wait=True)`;
      const result = await run(executor, code);
      expect(result.output).toBe("kept\n");
      expect(result.displays).toEqual([]);
    });

    it("are saved in outputDir, which stays, or else in a directory that stop() deletes", patience, async () => {
      const directory = await mkdtemp(path.join(tmpdir(), "fenced-test-"));
      const outputDir = path.join(directory, "made", "here");
      await using one = create({ outputDir });
      await using other = create();
      const html = `from IPython.display import HTML\nHTML("x")`;
      const [kept] = (await run(one, html)).displays[0]?.files ?? [];
      const [temporary] = (await run(other, html)).displays[0]?.files ?? [];
      await Promise.all([one.stop(), other.stop()]);
      expect(path.dirname(kept ?? "")).toBe(outputDir);
      expect(await readdir(outputDir)).toHaveLength(1);
      await expect(stat(path.dirname(temporary ?? ""))).rejects.toThrow(/ENOENT/);
      await rm(directory, { recursive: true });
    });

    it("have absolute paths, even if outputDir is relative to the current directory", patience, async () => {
      const directory = await mkdtemp(path.join(tmpdir(), "fenced-test-"));
      onTestFinished(() => rm(directory, { recursive: true }));
      await using executor = create({ outputDir: path.relative(process.cwd(), directory) });
      const { displays } = await executor.executeCodeBlocks([show({ "image/png": base64 })]);
      const [file = ""] = displays[0]?.files ?? [];
      expect(path.dirname(file)).toBe(directory);
      expect([...(await readFile(file))]).toEqual(bytes);
    });

    it("end with a traceback without ANSI codes, after what was printed before", patience, async () => {
      const executor = shared();
      const result = await executor.executeCodeBlocks([python("print('before')\n1/0"), python("print('never')")]);
      expect(result.exitCode).toBe(1);
      expect(result.stdout).toBe("before\n");
      expect(result.stderr).toMatch(/ZeroDivisionError: division by zero\n$/);
      expect(result.output).not.toContain("\u001B");
      expect(result.blocks).toHaveLength(1);
    });
  });
});

describe("a matplotlib plot", needs("jupyter"), () => {
  const { executor: create } = sharedServer("jupyter");

  it("is shown without any set-up", { timeout: 180_000 }, async () => {
    await using executor = create();
    const code = "import matplotlib.pyplot as plt\nplt.plot([1, 4, 9])\nplt.show()";
    const result = await executor.executeCodeBlocks([python(code)], { timeoutMs: 150_000 });
    expect(result).toMatchObject({ exitCode: 0 });
    const png = result.displays.map(({ data }) => data["image/png"]).find((data) => data !== undefined);
    expect(png).toBeInstanceOf(Uint8Array);
    expect(
      Buffer.from(png instanceof Uint8Array ? png : [])
        .subarray(1, 4)
        .toString(),
    ).toBe("PNG");
  });
});
