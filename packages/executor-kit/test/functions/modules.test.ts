import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { Alias, FunctionWithRequirements, ImportFromModule } from "@fenced/core";
import { renderJavaScriptModule, renderPythonModule } from "@fenced/executor-kit";
import { describe, expect, it } from "vitest";

describe("renderPythonModule", () => {
  it("writes each import once, followed by the functions", () => {
    const one = FunctionWithRequirements.fromString("def one(): return np", {
      globalImports: [
        "os.path",
        new Alias("numpy", "np"),
        new ImportFromModule("pathlib", ["Path", new Alias("PurePath", "P")]),
      ],
    });
    const two = FunctionWithRequirements.fromString("def two(): pass", { globalImports: [new Alias("numpy", "np")] });
    expect(renderPythonModule([one, two])).toBe(
      [
        "import os.path",
        "import numpy as np",
        "from pathlib import Path, PurePath as P",
        "",
        "",
        "def one(): return np",
        "",
        "",
        "def two(): pass",
        "",
      ].join("\n"),
    );
  });
});

describe("renderJavaScriptModule", () => {
  it("renders a module that loads, with every kind of import", async () => {
    const one = FunctionWithRequirements.fromJSON({
      language: "javascript",
      source:
        "function answer() { return [promises.readFile, p.join, join, os_.EOL].map((each) => typeof each).join(); }",
      requirements: {},
    });
    const globalImports = [
      "node:fs/promises",
      new Alias("node:path", "p"),
      new ImportFromModule("node:path", ["join"]),
      new Alias("node:os", "os_"),
    ];
    const two = FunctionWithRequirements.fromCallable(function other() {}, { globalImports });
    const source = renderJavaScriptModule([one, two]);
    const program = `const { answer } = await import(${JSON.stringify(`data:text/javascript,${encodeURIComponent(source)}`)});
      console.log(answer());`;
    const { stdout } = await promisify(execFile)(process.execPath, ["--input-type=module", "-e", program]);
    expect(stdout).toBe("function,function,function,string\n");
  });
});
