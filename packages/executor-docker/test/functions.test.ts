import { chmod, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { FunctionSetupError, withRequirements } from "@fenced/core";
import { needs } from "@fenced/test-support";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { DockerExecutorOptions } from "../src/index.ts";
import { createExecutor, printed } from "./support/create-executor.ts";

/** Makes the wheel of a package `fenced-probe` with one module, in the work directory. */
const makeWheel = `
import zipfile
info = "fenced_probe-1.0.dist-info/"
with zipfile.ZipFile("fenced_probe-1.0-py3-none-any.whl", "w") as wheel:
    wheel.writestr("fenced_probe.py", "def double(n):\\n    return 2 * n\\n")
    wheel.writestr(info + "METADATA", "Metadata-Version: 2.1\\nName: fenced-probe\\nVersion: 1.0\\n")
    wheel.writestr(info + "WHEEL", "Wheel-Version: 1.0\\nGenerator: test\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
    wheel.writestr(info + "RECORD", "".join(name + ",,\\n" for name in wheel.namelist()) + info + "RECORD,,\\n")
`;

describe("functions that need a package", { ...needs("docker"), timeout: 120_000 }, () => {
  let wheels = "";
  beforeAll(async () => {
    wheels = await mkdtemp(join(tmpdir(), "fenced-test-"));
    await chmod(wheels, 0o755);
    await using executor = createExecutor({ workDir: wheels, user: "0:0" });
    await printed(executor, "python", makeWheel);
  });
  afterAll(async () => {
    await rm(wheels, { recursive: true });
  });

  const options = (version: string): DockerExecutorOptions => ({
    extraVolumes: { [wheels]: { bind: "/wheels", mode: "ro" } },
    env: { PIP_NO_INDEX: "1", PIP_FIND_LINKS: "/wheels" },
    network: "none",
    functions: [
      withRequirements({ pythonPackages: [`fenced-probe${version}`], globalImports: ["fenced_probe"] })(
        "def quadruple(n):\n    return fenced_probe.double(fenced_probe.double(n))\n",
      ),
    ],
  });

  it("have it installed, and blocks can use both", async () => {
    await using executor = createExecutor(options(">=1.0"));
    expect(await printed(executor, "python", "from functions import quadruple; print(quadruple(10))")).toBe("40");
    const imported = "import fenced_probe; print(fenced_probe.double(4), fenced_probe.__file__.startswith('/tmp/'))";
    expect(await printed(executor, "python", imported)).toBe("8 True");
    await executor.restart();
    expect(await printed(executor, "python", "from functions import quadruple; print(quadruple(1))")).toBe("4");
    expect(await executor.files.list()).toEqual([]);
  });

  it("name the package if it cannot be installed", async () => {
    await using executor = createExecutor(options("==2.0"));
    await expect(printed(executor, "python", "print()")).rejects.toSatisfy(
      (error: unknown) => FunctionSetupError.isInstance(error) && /fenced-probe==2\.0/.test(error.message),
    );
  });
});
