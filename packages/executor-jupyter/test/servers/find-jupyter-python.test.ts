import { mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { jupyterPythons, needs } from "@fenced/test-support";
import { expect, it, onTestFinished } from "vitest";
import { findJupyterPython } from "../../src/servers/find-jupyter-python.ts";

it("findJupyterPython runs no module that code has left in the current directory", needs("jupyter"), async () => {
  const [before, directory] = [process.cwd(), await mkdtemp(join(tmpdir(), "fenced-test-"))];
  onTestFinished(async () => {
    process.chdir(before);
    await rm(directory, { recursive: true });
  });
  for (const name of ["ipykernel.py", "jupyter_server.py", "linecache.py"]) {
    await writeFile(join(directory, name), "open('it-ran', 'w')\n");
  }
  process.chdir(directory);
  const python = relative(directory, jupyterPythons.jupyter);
  expect(await findJupyterPython(python, { PATH: process.env["PATH"] ?? "" })).toMatch(/^\/.*python/);
  expect(await readdir(directory)).not.toContain("it-ran");
});
