import { needs } from "@fenced/test-support";
import { describe, expect, it } from "vitest";
import type { DockerExecutorOptions } from "../src/index.ts";
import { createExecutor, printed } from "./support/create-executor.ts";

/** Builds a wheel, because tests must not depend on a package index. */
const wheel = `import zipfile
with zipfile.ZipFile("greeter-1.0-py3-none-any.whl", "w") as archive:
    archive.writestr("greeter.py", "def greet():\\n    return 'hello'\\n")
    archive.writestr("greeter-1.0.dist-info/METADATA", "Metadata-Version: 2.1\\nName: greeter\\nVersion: 1.0\\n")
    archive.writestr("greeter-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
    archive.writestr("greeter-1.0.dist-info/RECORD", "")
`;
const install = `import subprocess, sys
subprocess.check_call([sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "./greeter-1.0-py3-none-any.whl"])
`;
const use = "import greeter\nprint(greeter.greet())";

describe("pip in a container", needs("docker"), () => {
  it.each<[string, DockerExecutorOptions]>([
    ["a new interpreter", {}],
    ["a warm interpreter", { warm: {} }],
    ["an interpreter that lives on", { stateful: true }],
    ["an interpreter after another command", { initCommand: "true" }],
    ["a home of its own", { env: { HOME: "/tmp/home" } }],
  ])("installs packages that the same block can import, in %s", async (_, options) => {
    await using executor = createExecutor({ network: "none", ...options });
    await printed(executor, "python", wheel);
    expect(await printed(executor, "python", install + use)).toBe("hello");
    expect(await printed(executor, "python", use)).toBe("hello");
  });

  it("installs packages for an interpreter that started before its user's directory was there", async () => {
    await using executor = createExecutor({ network: "none", stateful: true });
    await printed(executor, "python", `import os, shutil, site\nshutil.rmtree(site.getusersitepackages())\n${wheel}`);
    await printed(executor, "sh", "pip install --quiet --no-index ./greeter-1.0-py3-none-any.whl");
    expect(await printed(executor, "python", use)).toBe("hello");
  });
});
