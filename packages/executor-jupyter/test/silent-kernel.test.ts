import { chmod, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { jupyterPythons, needs } from "@fenced/test-support";
import { expect, it, onTestFinished, vi } from "vitest";
import { JupyterCodeExecutor, LocalJupyterServer } from "../src/index.ts";
import { python } from "./support/python.ts";

// It took 130 seconds when the server alone decided how long to wait.
const settings = { ...needs("jupyter2"), timeout: 110_000 };

// Like a kernel that has lost a port to another program: it runs, but never answers.
it("a new kernel that never answers is replaced by another one", settings, async () => {
  const directory = await mkdtemp(path.join(tmpdir(), "fenced-test-"));
  onTestFinished(() => rm(directory, { recursive: true }));
  const kernel = path.join(directory, "kernels/deaf-once");
  const program = path.join(kernel, "start.sh");
  await mkdir(kernel, { recursive: true });
  const start = `exec ${jupyterPythons.jupyter2} -m ipykernel_launcher -f "$1"`;
  await writeFile(program, `#!/bin/sh\nmkdir ${directory}/deaf 2> /dev/null && exec sleep 300\n${start}\n`);
  await chmod(program, 0o755);
  const spec = { argv: [program, "{connection_file}"], display_name: "Deaf once", language: "python" };
  await writeFile(path.join(kernel, "kernel.json"), JSON.stringify(spec));
  vi.stubEnv("JUPYTER_PATH", directory);
  onTestFinished(() => void vi.unstubAllEnvs());
  const server = new LocalJupyterServer({ python: jupyterPythons.jupyter2, inheritEnv: ["JUPYTER_PATH"] });
  await using executor = new JupyterCodeExecutor({ server, kernelName: "deaf-once" });
  expect(await executor.executeCodeBlocks([python("print(6 * 7)")])).toMatchObject({ exitCode: 0, output: "42\n" });
});
