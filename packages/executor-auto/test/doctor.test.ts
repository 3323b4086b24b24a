import { chown, mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { needs, nightly } from "@fenced/test-support";
import { machine, pathWith } from "@fenced/test-support/machines";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import type { Diagnosis } from "../src/cli/diagnose.ts";
import { findTools } from "../src/cli/tools.ts";
import { runNode } from "./support.ts";

const cli = "../src/cli.ts";

describe("fenced doctor", () => {
  it("shows what works in a table", needs("docker", "bubblewrap"), async () => {
    const { exitCode, stdout, stderr } = await runNode(cli, ["doctor", "--image", "fenced-test:python"], {}).outcome;
    expect(stderr).toBe("");
    expect(stdout).toMatch(/^docker +container +(?:shared|user-space|own) +works$/m);
    expect(stdout).toMatch(/^os-sandbox +os-sandbox +shared +works$/m);
    expect(stdout).toMatch(/^wasm +wasm +user-space +works$/m);
    expect(stdout).toMatch(/^Docker +\d[\d.]+ +container$/m);
    expect(stdout).toMatch(/^bubblewrap +\d[\d.]+ +os-sandbox$/m);
    expect(stdout).toContain("The strongest fence here: docker.");
    expect(exitCode).toBe(0);
  });

  it("tells that containers run in gVisor", needs("docker", "gvisor"), async () => {
    const { stdout } = await runNode(cli, ["doctor", "--json", "--image", "fenced-test:python"], {}).outcome;
    const { fences, tools } = JSON.parse(stdout) as Diagnosis;
    expect(fences[0]).toEqual({ name: "docker", isolation: "container", kernel: "user-space", works: true });
    expect(tools.find(({ name }) => name === "gVisor")?.found).toMatch(/^\d/);
  });

  it("says what is wrong, and how to install what is missing", async () => {
    // apt-get is only looked for, never run.
    const env = {
      ...(await machine("os-sandbox")),
      PATH: await pathWith({ node: process.execPath, "apt-get": process.execPath }),
    };
    const { exitCode, stdout } = await runNode(cli, ["doctor", "--json"], env).outcome;
    const { strongest, fences, tools } = JSON.parse(stdout) as Diagnosis;
    expect(exitCode).toBe(0);
    expect(strongest).toBe("wasm");
    expect(fences.map(({ name, works }) => [name, works])).toEqual([
      ["docker", false],
      ["os-sandbox", false],
      ["wasm", true],
    ]);
    expect(fences[0]?.problem).toContain("No Docker daemon answers");
    expect(fences[1]?.remedy).toContain("apt install bubblewrap");
    const commands = Object.fromEntries(tools.map(({ name, found, install }) => [name, found ?? install]));
    const root = process.getuid?.() === 0 ? "" : "sudo ";
    expect(commands).toMatchObject({
      Docker: `${root}apt-get install -y docker.io`,
      Podman: `${root}apt-get install -y podman`,
      bubblewrap: `${root}apt-get install -y bubblewrap`,
      Python: `${root}apt-get install -y python3`,
      // It may be in the system's Python, which is not on that PATH.
      Jupyter: expect.stringMatching(/^\d|apt-get install -y jupyter-server python3-ipykernel$/),
      ssh: `${root}apt-get install -y openssh-client`,
    });
  });

  // Without a cache, WebAssembly loads Python anew, which takes long on a busy machine.
  const loadsPython = { ...needs("root"), timeout: 300_000 };
  it(
    "works for a user without a name and a home directory, and so does WebAssembly",
    { ...loadsPython, ...nightly },
    async () => {
      const uid = 54_321;
      const TMPDIR = await mkdtemp(join(tmpdir(), "fenced-test-"));
      onTestFinished(() => rm(TMPDIR, { recursive: true }));
      await chown(TMPDIR, uid, uid);
      const { exitCode, stdout } = await runNode(cli, ["doctor", "--json"], { TMPDIR }, "", uid).outcome;
      expect(exitCode).toBe(0);
      const { fences } = JSON.parse(stdout) as Diagnosis;
      expect(fences.map(({ problem = "" }) => problem).join("\n")).not.toMatch(/homedir|userInfo/);
      expect(fences.find(({ name }) => name === "wasm")).toEqual({
        name: "wasm",
        isolation: "wasm",
        kernel: "user-space",
        works: true,
      });
    },
  );

  it("does not name the option of the library that it sets itself", needs("docker"), async () => {
    const { stdout } = await runNode(cli, ["doctor", "--image", "fenced-test:missing"], {}).outcome;
    expect(stdout).toMatch(
      /^docker: The daemon has no image "fenced-test:missing"\. Run `docker pull fenced-test:missing`; the first start does it, too\.$/m,
    );
  });

  it("finds Jupyter in a Python that is not the first", needs("jupyter"), async () => {
    // The first python3 on this PATH has no module of that name.
    vi.stubEnv("PATH", await pathWith({ python3: "/bin/false" }));
    onTestFinished(() => void vi.unstubAllEnvs());
    const tools = await findTools();
    expect(tools.find(({ name }) => name === "Jupyter")?.found).toMatch(/^\d/);
  });

  it("fails if there is no fence", async () => {
    const missing = "@fenced/executor-docker,@fenced/executor-local,@fenced/executor-wasm";
    const { exitCode, stdout } = await runNode(cli, ["doctor"], { WITHOUT_PACKAGES: missing }).outcome;
    expect(exitCode).toBe(1);
    expect(stdout).toContain("wasm: The package @fenced/executor-wasm is not installed. Run: npm install");
    expect(stdout).toContain("No fence works on this machine yet.");
  });

  it("does not run modules that code has left in the current directory", needs("python3"), async () => {
    const [before, directory] = [process.cwd(), await mkdtemp(join(tmpdir(), "fenced-test-"))];
    onTestFinished(async () => {
      process.chdir(before);
      await rm(directory, { recursive: true });
    });
    for (const name of ["ipykernel.py", "jupyter_server.py", "linecache.py"]) {
      await writeFile(join(directory, name), "open('it-ran', 'w')\n__version__ = '6.6.6'\n");
    }
    process.chdir(directory);
    const tools = await findTools();
    expect(tools.find(({ name }) => name === "Jupyter")?.found).not.toBe("6.6.6");
    expect(await readdir(directory)).not.toContain("it-ran");
  });
});
