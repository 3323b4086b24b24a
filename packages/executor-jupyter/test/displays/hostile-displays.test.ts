import { link, mkdir, mkdtemp, readdir, readFile, realpath, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { InvalidInputError } from "@fenced/core";
import { jupyterImage, needs, nightly } from "@fenced/test-support";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { DockerJupyterServer, JupyterCodeExecutor, type JupyterServer } from "../../src/index.ts";
import { sharedServer } from "../support/local-server.ts";
import { python } from "../support/python.ts";

const patience = { timeout: 120_000 };
const show = `from IPython.display import display, update_display
def show(text, **more): display({"text/html": text}, raw=True, display_id="it", **more)`;

let directory = "";
beforeEach(async () => {
  directory = await realpath(await mkdtemp(path.join(tmpdir(), "fenced-test-")));
});
afterEach(async () => rm(directory, { recursive: true }));

describe("code that can write where rich outputs are saved", needs("jupyter"), () => {
  const { server, executor: create } = sharedServer();
  const inContainer = (bound: string): JupyterServer => ({
    isolation: "container",
    acquire: async (signal) => ({ ...(await server.acquire(signal)), bound }),
  });

  it("cannot redirect the host to another file through a link", patience, async () => {
    const outputDir = path.join(directory, "out");
    const victim = path.join(directory, "victim");
    await writeFile(victim, "untouched");
    await using executor = create({ outputDir });
    const first = await executor.executeCodeBlocks([python(`${show}\nshow("one")`)]);
    const [file = ""] = first.displays[0]?.files ?? [];
    const swap = `import os\nos.unlink(${JSON.stringify(file)})\nos.symlink(${JSON.stringify(victim)}, ${JSON.stringify(file)})`;
    const result = await executor.executeCodeBlocks([python(`${swap}\nshow("chosen", update=True)`)]);
    expect(result.displays[0]?.files).toEqual([file]);
    expect(await readFile(victim, "utf8")).toBe("untouched");
    expect(await readFile(file, "utf8")).toBe("chosen");
    expect(await readdir(outputDir)).toEqual([path.basename(file)]);
  });

  it("cannot block the host with a named pipe, nor make it write through a hard link", patience, async () => {
    const outputDir = path.join(directory, "out");
    await using executor = create({ outputDir });
    const first = await executor.executeCodeBlocks([python(`${show}\nshow("one")`)]);
    const [file = ""] = first.displays[0]?.files ?? [];
    await link(file, path.join(directory, "other name"));
    expect((await executor.executeCodeBlocks([python(`show("two", update=True)`)])).exitCode).toBe(0);
    expect(await readFile(path.join(directory, "other name"), "utf8")).toBe("one");
    const swap = `import os\nos.unlink(${JSON.stringify(file)})\nos.mkfifo(${JSON.stringify(file)})`;
    expect((await executor.executeCodeBlocks([python(`${swap}\nshow("three", update=True)`)])).timedOut).toBe(false);
    expect(await readFile(file, "utf8")).toBe("three");
  });

  it("loses no result by removing the directory or replacing a file with a directory", patience, async () => {
    const outputDir = path.join(directory, "out");
    await using executor = create({ outputDir });
    const first = await executor.executeCodeBlocks([python(`${show}\nshow("one")`)]);
    const [file = ""] = first.displays[0]?.files ?? [];
    const swap = `import os, shutil\nos.unlink(${JSON.stringify(file)})\nos.makedirs(${JSON.stringify(file)} + "/full")`;
    for (const attack of [swap, `shutil.rmtree(${JSON.stringify(outputDir)})`]) {
      const result = await executor.executeCodeBlocks([python(`${attack}\nshow("two", update=True)\nprint("done")`)]);
      expect(result).toMatchObject({ exitCode: 0, stdout: "two\ndone\n" });
      expect(result.displays).toEqual([{ data: { "text/html": "two" }, files: [] }]);
      expect(result.stderr).toMatch(/could not be saved: E/);
    }
  });

  it("cannot redirect the host by replacing the directory with a link", patience, async () => {
    const outputDir = path.join(directory, "out");
    const elsewhere = path.join(directory, "elsewhere");
    await mkdir(elsewhere);
    await using executor = create({ outputDir });
    const swap = `import os\nos.rename(${JSON.stringify(outputDir)}, "was")\nos.symlink(${JSON.stringify(elsewhere)}, ${JSON.stringify(outputDir)})`;
    await executor.executeCodeBlocks([python(`${show}\nshow("x")`)]);
    expect(await executor.executeCodeBlocks([python(`${swap}\nshow("y")`)])).toMatchObject({ exitCode: 0 });
    expect(await readdir(elsewhere)).toEqual([]);
  });

  it("in a container makes start() reject such a directory, however the paths overlap", patience, async () => {
    const bound = path.join(directory, "bound");
    await mkdir(path.join(bound, "below"), { recursive: true });
    await mkdir(path.join(directory, "apart"));
    await symlink(path.join(bound, "below"), path.join(directory, "to-below"));
    await symlink("../apart", path.join(bound, "away"));
    await symlink(path.join(bound, "away"), path.join(directory, "through"));
    await symlink(bound, path.join(directory, "alias"));
    const meeting = [
      "bound",
      "bound/below/new",
      "bound/new/../x",
      "to-below",
      "to-below/new",
      "bound/away",
      "through/new",
    ];
    for (const outputDir of meeting.map((each) => path.join(directory, each))) {
      for (const place of [bound, path.join(directory, "alias")]) {
        await using executor = new JupyterCodeExecutor({ server: inContainer(place), outputDir });
        await expect(executor.start()).rejects.toThrow(/which the code can change.*outside/);
        await expect(executor.start()).rejects.toSatisfy(InvalidInputError.isInstance);
      }
    }
    await using temporary = new JupyterCodeExecutor({ server: inContainer(tmpdir()) });
    await expect(temporary.start()).rejects.toThrow(/directory for temporary files/);
    // A directory above the bound one is the user's own.
    await using above = new JupyterCodeExecutor({ server: inContainer(bound), outputDir: directory });
    const { displays } = await above.executeCodeBlocks([python(`${show}\nshow("x")`)]);
    expect(displays[0]?.files).toHaveLength(1);
  });
});

describe("code in a container", needs("jupyterDocker"), () => {
  it("cannot have an outputDir in its workDir", { timeout: 180_000 }, async () => {
    const workDir = path.join(directory, "work");
    const server = new DockerJupyterServer({ baseImage: jupyterImage, workDir });
    await using executor = new JupyterCodeExecutor({ server, outputDir: path.join(workDir, "plots") });
    await expect(executor.start()).rejects.toThrow(/outside `workDir`/);
  });
});

describe("malformed rich outputs", needs("jupyter"), () => {
  const { executor: create } = sharedServer();

  it("keep values that fit their type, and drop the rest", patience, async () => {
    await using executor = create();
    const deep = `deep = []\nfor _ in range(5000): deep = [deep]`;
    const code = `from IPython.display import display
import sys; sys.setrecursionlimit(100_000)
ip = get_ipython()
${deep}
def send(data): ip.kernel.session.send(ip.kernel.iopub_socket, "display_data", {"data": data, "metadata": {}, "transient": {}}, parent=ip.kernel.get_parent())
send({"text/plain": "x", "__proto__": {"a": 1}, "constructor": "y", "toString": "z", "": "w", "../x/y": "v"})
send({"text/html": {"a": 1}, "image/png": 5, "text/plain": None, "application/json": {"__proto__": {"b": 1}, "c": 2}})
send({"a/" + str(n): "" for n in range(1000)})
send("no bundle")
send(5)
ip.kernel.session.send(ip.kernel.iopub_socket, "stream", {"name": 5, "text": 6}, parent=ip.kernel.get_parent())
ip.kernel.session.send(ip.kernel.iopub_socket, "error", {"ename": 1, "evalue": 2, "traceback": 3}, parent=ip.kernel.get_parent())
print("done")`;
    const result = await executor.executeCodeBlocks([python(code)]);
    expect(result.output).toContain("done\n");
    const [one, other, many, ...none] = result.displays;
    expect(one).toEqual({ data: { "text/plain": "x" }, files: [] });
    expect(Object.keys(one?.data ?? {})).toEqual(["text/plain"]);
    expect(other?.data).toEqual({ "application/json": { c: 2 } });
    expect(Object.keys(many?.data ?? {})).toHaveLength(64);
    expect(none.map(({ data }) => data)).toEqual([{}, {}]);
    expect(JSON.stringify(result.displays)).not.toContain("__proto__");
  });

  it("do not fail the call by being deeply nested", patience, async () => {
    await using executor = create();
    const code = `ip = get_ipython()
text = '{"data": {"application/json": ' + "[" * 50000 + "]" * 50000 + ', "text/plain": "deep"}, "metadata": {}}'
message = ip.kernel.session.msg("display_data", {}, parent=ip.kernel.get_parent())
message["content"] = text
ip.kernel.session.send(ip.kernel.iopub_socket, message)
print("done")`;
    const result = await executor.executeCodeBlocks([python(code)]);
    expect(result).toMatchObject({ exitCode: 0 });
    expect(result.output).toContain("done\n");
  });

  // The limit is that of the kit, whose tests reach it.
  it("are limited in number, and the result says so", { timeout: 300_000, ...nightly }, async () => {
    await using executor = create();
    const code = `from IPython.display import display\nfor _ in range(10_050): display({"text/x": ""}, raw=True)\nprint("done")`;
    const result = await executor.executeCodeBlocks([python(code)], { timeoutMs: 250_000 });
    expect(result).toMatchObject({
      exitCode: 0,
      truncated: true,
      stdout: expect.stringMatching(/^\[text\/x\]\n[^]*\ndone\n$/),
    });
    expect(result.displays).toHaveLength(10_000);
    expect(result.stderr).toMatch(
      /^A block may show at most 10000 rich outputs, 256 MiB in total; the rest is left out\.\n$/,
    );
  });

  it("save one file for a picture, however many formats it has", patience, async () => {
    await using executor = create();
    const code = `from IPython.display import display
display({"image/jpeg": "AAAA", "image/png": "AQID", "text/html": "<img>"}, raw=True)`;
    const [display] = (await executor.executeCodeBlocks([python(code)])).displays;
    expect(Object.keys(display?.data ?? {})).toEqual(["image/jpeg", "image/png", "text/html"]);
    expect(display?.files.map((file) => path.extname(file))).toEqual([".png", ".html"]);
  });
});
