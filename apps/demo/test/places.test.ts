import { chmod, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { startAcaEmulator } from "@fenced/aca-emulator";
import { needs } from "@fenced/test-support";
import { machine, machineKinds } from "@fenced/test-support/machines";
import { host, SshServer } from "@fenced/test-support/ssh-server";
import { describe, expect, it } from "vitest";
import { runDemo, runDemoInImage, temporaryFolder } from "./run-demo.ts";
import { expectSolved } from "./solved.ts";

const failure = "KeyError: None";

describe("the demo's task is solved", () => {
  it("in a container", needs("docker"), async () => {
    const outcome = await runDemo(["--executor", "docker", "--image", "fenced-test:python"]);
    expect(outcome.stdout).toContain("The code runs in a container.");
    expectSolved(outcome, failure);
  });

  it("in an OS sandbox", needs(...machineKinds["os-sandbox"]), async () => {
    const outcome = await runDemo(["--executor", "os-sandbox"], await machine("os-sandbox"));
    expect(outcome.stdout).toContain("The code runs in an OS sandbox.");
    expectSolved(outcome, failure);
  });

  it("behind the strongest fence, with --executor auto", async () => {
    const outcome = await runDemo(["--executor", "auto"], await machine("wasm"));
    expect(outcome.stdout).toContain("The code runs in an interpreter in WebAssembly.");
    expectSolved(outcome, failure);
  });

  it("in WebAssembly", async () => {
    const outcome = await runDemo(["--executor", "wasm"], await machine("wasm"));
    expect(outcome.stdout).toContain("The code runs in an interpreter in WebAssembly.");
    expectSolved(outcome, failure);
  });

  it("in an emulated Azure session", needs("python3"), async () => {
    await using emulator = await startAcaEmulator();
    const env = { ACA_POOL_MANAGEMENT_ENDPOINT: emulator.endpoint, ACA_TOKEN: emulator.token() };
    const outcome = await runDemo(["--executor", "aca"], env);
    expect(outcome.stdout).toContain("The code runs on another machine.");
    expectSolved(outcome, failure);
    expect(emulator.sessions()).toEqual([]);
  });

  it("on another host", needs("ssh", "python3"), async () => {
    await using server = await SshServer.start();
    // Replaces the user's own configuration, which ssh finds through the user's account.
    const folder = await temporaryFolder();
    const ssh = join(folder, "ssh");
    const before = process.env.PATH ?? "";
    await writeFile(ssh, `#!/bin/sh\nPATH='${before}' exec ssh -F '${server.configFile}' "$@"\n`);
    await chmod(ssh, 0o755);
    const outcome = await runDemo(["--executor", "ssh", "--host", host], { PATH: `${folder}:${before}` });
    expect(outcome.stdout).toContain("The code runs on another machine.");
    expectSolved(outcome, failure);
  });
});

describe("the Pythons that --executor jupyter tries", needs("docker"), () => {
  const python = "/opt/no-jupyter/python3";

  it.each([
    ["", "there is no Python on the PATH", "Install Python 3.9 or newer"],
    ["/opt/no-jupyter:", `found: ${python} (has no jupyter_server).`, `${python} -m pip install`],
  ])("are named only if they exist, with %j before the PATH", async (before, found, remedy) => {
    const folder = await temporaryFolder();
    await writeFile(
      join(folder, "python3"),
      "#!/bin/sh\necho \"ModuleNotFoundError: No module named 'jupyter_server'\" >&2; exit 1\n",
    );
    await chmod(join(folder, "python3"), 0o755);
    const { exitCode, stderr } = await runDemoInImage("fenced-test:node", {
      args: ["--executor", "jupyter"],
      mounts: { [folder]: "/opt/no-jupyter" },
      env: { PATH: `${before}/usr/bin:/bin` },
    });
    expect(stderr).toContain(found);
    expect(stderr).toContain(remedy);
    expect(stderr).toContain("or choose another Python with an active virtual environment.");
    expect(stderr).not.toContain("/usr/bin/python3");
    expect(exitCode).toBe(1);
  });
});
