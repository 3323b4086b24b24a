import fs from "node:fs";
import path from "node:path";
import { nightly, slow } from "@fenced/test-support";
import { describe, expect, it } from "vitest";
import { WasmCodeExecutor } from "../src/index.ts";
import { dynamicLibrary } from "./fixtures/dynamic-library.ts";
import { PackagePlace } from "./fixtures/package-place.ts";
import { PackageServer } from "./fixtures/package-server.ts";
import { wheel } from "./fixtures/wheel.ts";

const place = new PackagePlace();
const { wheels } = place;
const minutes = { timeout: 240_000, ...slow };

describe("packages from a folder", minutes, () => {
  it("are available to the first block, with their dependencies, in the newest versions that fit", async () => {
    place.add(
      wheel({
        name: "tool",
        requires: ["Helper_Lib[full]>=1,<3", 'other; sys_platform == "win32"', 'never; extra == "full"'],
      }),
      wheel({ name: "helper_lib", version: "1.0" }),
      wheel({
        name: "helper_lib",
        version: "2.10",
        requires: ['more; extra == "full"'],
        metadata: "Provides-Extra: full\n",
      }),
      wheel({ name: "helper_lib", version: "2.9" }),
      wheel({ name: "helper_lib", version: "2.11rc1" }),
      wheel({ name: "helper_lib", version: "2.12", metadata: "Requires-Python: <3.10\n" }),
      wheel({ name: "helper_lib", version: "3.0" }),
      wheel({ name: "more" }),
    );
    const code = "import tool, helper_lib, more\nprint(tool.version, helper_lib.version)\nimport never";
    expect(await place.run({ wheels, install: ["tool"] }, code)).toMatch(/^1\.0 2\.10\n.*No module named 'never'/s);
  });

  it.skipIf(!fs.existsSync("/proc/self/fd"))("are closed when the executor stops", async () => {
    place.add(wheel({ name: "tool" }), wheel({ name: "other" }));
    const opened = () =>
      fs
        .readdirSync("/proc/self/fd")
        .filter((each) => linkTarget(`/proc/self/fd/${each}`).includes(`${place.cacheDirectory}/packages-`));
    const before = opened().length;
    await using executor = place.open({ wheels, install: ["tool"], installFromCode: true });
    const code =
      "import micropip; await micropip.install('other'); import tool, other; print(tool.version, other.version)";
    expect((await executor.executeCodeBlocks([{ language: "python", code }])).output).toBe("1.0 1.0\n");
    expect(opened().length).toBeGreaterThan(before);
    await executor.stop();
    expect(opened().length).toBe(before);
  });

  it("are resolved to older versions if two requirements conflict", async () => {
    place.add(
      wheel({ name: "one", requires: ["shared<2"] }),
      wheel({ name: "two", version: "2.0", requires: ["shared>=2"] }),
      wheel({ name: "two", version: "1.0", requires: ["shared"] }),
      wheel({ name: "shared", version: "1.5", requires: ["two"] }),
      wheel({ name: "shared", version: "2.5" }),
    );
    const code = "import two, shared; print(two.version, shared.version)";
    expect(await place.run({ wheels, install: ["two", "one"] }, code)).toBe("1.0 1.5\n");
    expect(await place.refusal({ wheels, install: ["two>=2", "one"] })).toMatch(
      /no version meets shared<2 \(one 1\.0\), shared>=2 \(two 2\.0\)\. Available: 2\.5, 1\.5\./,
    );
  });

  it("have their data, metadata, bytecode and source lines in tracebacks, and cannot be changed", async () => {
    place.add(
      wheel({
        name: "tool",
        files: {
          "tool/__init__.py": "def fail():\n    raise ValueError('no')  # here\n",
          "tool/data/table.csv": "a,b\n1,2\n",
          "tool-1.0.data/purelib/beside.py": "value = 7\n",
          "tool-1.0.data/scripts/run": "#!python\n",
        },
      }),
    );
    const code = `
import importlib.metadata, importlib.resources, os, tool, beside
print(importlib.metadata.version("tool"), beside.value, tool.__cached__)
print(importlib.resources.files("tool").joinpath("data/table.csv").read_text().split())
root = os.path.dirname(os.path.dirname(tool.__file__))
print(sorted(os.listdir(root)), os.stat(tool.__file__).st_size, open(tool.__file__, "rb").read()[-8:])
for change in (lambda: open(tool.__file__, "w"), lambda: open(root + "/new", "w"), lambda: os.remove(tool.__file__),
               lambda: os.mkdir(root + "/tool/x"), lambda: os.rename(root + "/tool", root + "/other")):
    try:
        change()
        print("changed")
    except OSError as error:
        print(error.strerror)
tool.fail()
`;
    const output = await place.run({ wheels, install: ["tool==1.0"] }, code);
    expect(output.split("\n").slice(0, 8)).toEqual([
      "1.0 7 /lib/python3.14/site-packages/tool/__pycache__/__init__.cpython-314.pyc",
      "['a,b', '1,2']",
      "['__pycache__', 'beside.py', 'tool', 'tool-1.0.dist-info'] 47 b' # here\\n'",
      ...Array.from({ length: 5 }, () => "Permission denied"),
    ]);
    expect(output).toMatch(/raise ValueError\('no'\) {2}# here/);
  });

  it.each(nightly.skip ? [true] : [true, false])(
    "may be compiled for this interpreter (OS sandbox: %s)",
    async (osSandbox) => {
      const files = { "compiled.cpython-314-wasm32-emscripten.so": dynamicLibrary() };
      const tag = "cp314-cp314-pyemscripten_2026_0_wasm32";
      place.add(
        wheel({ name: "compiled", tag, files }),
        wheel({ name: "compiled", files: { "compiled.py": "answer = 0" } }),
      );
      const code = "import compiled; print(compiled.answer, compiled.__file__[-3:])";
      const use = osSandbox ? ("auto" as const) : false;
      expect(await place.run({ wheels, install: ["compiled"] }, code, { osSandbox: use })).toBe("42 .so\n");
    },
  );

  it("are unpacked only once", nightly, async () => {
    place.add(wheel({ name: "tool" }));
    const images = (): string[] =>
      fs.readdirSync(place.cacheDirectory).filter((name) => name.startsWith("packages-for-"));
    const before = images().length;
    for (let count = 0; count < 2; count += 1) {
      expect(await place.run({ wheels, install: ["tool"] }, "import tool; print(tool.version)")).toBe("1.0\n");
    }
    expect(images()).toHaveLength(before + 1);
    // A replaced wheel of the same name is another wheel.
    place.add(wheel({ name: "tool", files: { "tool.py": "version = 'new'\n" } }));
    expect(await place.run({ wheels, install: ["tool"] }, "import tool; print(tool.version)")).toBe("new\n");
  });

  it("are unpacked again if their file is damaged", nightly, async () => {
    place.add(wheel({ name: "tool" }));
    const packages = { wheels, install: ["tool"] };
    const images = (): string[] =>
      fs.readdirSync(place.cacheDirectory).filter((name) => name.startsWith("packages-for-"));
    const known = new Set(images());
    await place.run(packages, "");
    const [name = ""] = images().filter((each) => !known.has(each));
    fs.truncateSync(path.join(place.cacheDirectory, name), 100);
    expect(await place.run(packages, "import tool; print(tool.version)")).toBe("1.0\n");
  });

  it("stay when the interpreter is replaced", nightly, async () => {
    place.add(wheel({ name: "tool" }));
    await using executor = place.open({ wheels, install: ["tool"] });
    const run = async (code: string, options = {}) =>
      executor.executeCodeBlocks([{ language: "python", code }], options);
    expect((await run("import tool\nwhile True: pass", { timeoutMs: 3000 })).stateLost).toBe(true);
    expect((await run("import tool; print(tool.version)")).output).toBe("1.0\n");
  });
});

describe("wheels that do not fit", minutes, () => {
  it("are rejected with an error that says what to provide instead", async () => {
    place.add(
      wheel({ name: "numeric", tag: "cp311-cp311-manylinux_2_28_x86_64" }),
      wheel({ name: "numeric", tag: "cp313-cp313-pyodide_2025_0_wasm32" }),
    );
    expect(await place.refusal({ wheels, install: ["numeric"] })).toMatch(
      /numeric: no wheel fits this interpreter, Python 3\.14\.\d+ in WebAssembly\. Available: numeric-1\.0-cp31\S+\.whl, numeric-\S+\.whl\. Provide a wheel whose name ends in py3-none-any\.whl or cp314-cp314-pyemscripten_2026_0_wasm32\.whl/,
    );
    expect(await place.refusal({ wheels, install: ["absent"] })).toMatch(
      /absent: there is no wheel for it in the folder/,
    );
    expect(await place.refusal({ wheels, install: ["not a name"] })).toMatch(/'not a name' is not a valid requirement/);
    expect(await place.refusal({ wheels, install: ["tool @ https://example.com/tool.whl"] })).toMatch(/is a URL/);
    expect(await place.refusal({ wheels: `${wheels}/none`, install: ["tool"] })).toMatch(/could not be opened: ENOENT/);
  });

  it.each([
    [{ install: ["tool"] }, "needs `wheels` or `index`"],
    [{ wheels: "/wheels" }, "needs `install` or `installFromCode`"],
    [{ wheels: "wheels", install: ["tool"] }, "must be an absolute path"],
    [{ wheels: "/wheels", fileOrigins: ["https://example.com"], install: ["tool"] }, "needs `index`"],
    [{ index: "https://user:secret@example.com/simple", install: ["tool"] }, "must have no user name"],
    [{ index: "file:///simple", install: ["tool"] }, "packages.index"],
  ])("are rejected with the options %j", (packages, reason) => {
    expect(() => new WasmCodeExecutor({ packages })).toThrow(reason);
  });

  it("are rejected without Python", () => {
    const packages = { wheels, install: ["tool"] };
    expect(() => new WasmCodeExecutor({ languages: ["javascript"], packages })).toThrow(/python/);
  });
});

describe("packages from an index", minutes, () => {
  const tool = wheel({ name: "tool", requires: ["helper"] });
  const newest = wheel({ name: "helper", version: "2.0" });
  const served = [tool, wheel({ name: "helper", version: "1.0" }), newest, wheel({ name: "unused" })];
  const code = "import tool, helper; print(tool.version, helper.version)";

  const descriptions = [
    ["HTML", { html: true }, {}],
    ["JSON with metadata", { metadata: true }, {}],
    ["JSON", {}, nightly],
    ["HTML with metadata", { metadata: true, html: true }, nightly],
  ] as const;
  for (const [kind, options, when] of descriptions) {
    it(`described in ${kind} are fetched, and nothing else is`, when, async () => {
      await using server = await PackageServer.start(served, options);
      expect(await place.run({ index: server.index, install: ["tool"] }, code)).toBe("1.0 2.0\n");
      const files = [tool, newest].flatMap(({ filename }) =>
        "metadata" in options ? [`/files/${filename}.metadata`, `/files/${filename}`] : [`/files/${filename}`],
      );
      expect(server.asked.toSorted()).toEqual(["/simple/helper/", "/simple/tool/", ...files].toSorted());
    });
  }

  it("are requested once per program, and those in the folder come first", async () => {
    place.add(wheel({ name: "helper", version: "2.0", files: { "helper.py": "version = 'of the folder'\n" } }));
    await using server = await PackageServer.start(served);
    const packages = { wheels, index: server.index, install: ["tool"] };
    expect(await place.run(packages, code)).toBe("1.0 of the folder\n");
    const only = { index: server.index, install: ["helper"] };
    await place.run(only, "");
    const asked = server.asked.length;
    expect(await place.run(only, "import helper; print(helper.version)")).toBe("2.0\n");
    expect(server.asked).toHaveLength(asked);
  });

  it("may be at another origin if fileOrigins names it", async () => {
    await using files = await PackageServer.start(served);
    await using server = await PackageServer.start(served, { files: `${files.origin}/files/` });
    const packages = { index: server.index, install: ["tool"] };
    expect(await place.refusal(packages)).toMatch(
      /links to \S+, which is not on \S+\. If you trust it, add its origin/,
    );
    expect(files.asked).toEqual([]);
    expect(await place.run({ ...packages, fileOrigins: [files.origin] }, code)).toBe("1.0 2.0\n");
  });
});

describe("code that installs packages", minutes, () => {
  const install = (name: string): string => `import micropip\nawait micropip.install(${JSON.stringify(name)})\n`;

  it("gets them alongside installed ones, and they stay when the interpreter is replaced", async () => {
    place.add(wheel({ name: "tool" }), wheel({ name: "late", requires: ["tool"] }), wheel({ name: "later" }));
    const packages = { wheels, install: ["tool"], installFromCode: true };
    await using executor = place.open(packages, { timeoutMs: 120_000 });
    const run = async (code: string) => (await executor.executeCodeBlocks([{ language: "python", code }])).output;
    await run("import tool; tool.version = 'mine'");
    expect(await run(`${install("late")}import late, tool; print(late.version, tool.version)`)).toBe("1.0 mine\n");
    expect(await run(`${install("later")}import later; print(micropip.list())`)).toBe(
      "{'late': '1.0', 'later': '1.0', 'tool': '1.0'}\n",
    );
    expect(await run(install("absent"))).toMatch(/ValueError: absent: there is no wheel for it/);
    await executor.restart();
    expect(await run("import late, later, tool; print(tool.version)")).toBe("1.0\n");
  });

  it("gets nothing unless the caller allows it", async () => {
    place.add(wheel({ name: "tool" }), wheel({ name: "late" }));
    const code = `
import sys
print(sys.modules["_fenced"]._ask({"op": "install", "requirements": ["late"], "installed": []}))
${install("late")}`;
    expect(await place.run({ wheels, install: ["tool"] }, code)).toMatch(/'EINVAL'.*No module named 'micropip'/s);
  });

  it("is aborted with its block, and the session continues", async () => {
    const ended = new AbortController();
    const answer = (): boolean => {
      ended.abort();
      return true;
    };
    await using server = await PackageServer.start([], { answer });
    await using executor = place.open({ index: server.index, installFromCode: true });
    const block = { language: "python", code: install("tool") };
    await expect(executor.executeCodeBlocks([block], { signal: ended.signal })).rejects.toThrow(/abort/);
    expect(server.asked).toEqual(["/simple/tool/"]);
    expect((await executor.executeCodeBlocks([{ language: "python", code: "print(6 * 7)" }])).output).toBe("42\n");
  });
});

/** Where a link leads; empty if it is gone. */
function linkTarget(link: string): string {
  try {
    return fs.readlinkSync(link);
  } catch {
    return "";
  }
}
