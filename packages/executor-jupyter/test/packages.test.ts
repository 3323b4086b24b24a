import { execFile } from "node:child_process";
import { mkdir, mkdtemp, realpath, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { promisify } from "node:util";
import { withRequirements } from "@fenced/core";
import { jupyterPythons, needs } from "@fenced/test-support";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { JupyterCodeExecutor, LocalJupyterServer } from "../src/index.ts";
import { python } from "./support/python.ts";

const patience = { timeout: 120_000 };
const execute = promisify(execFile);

/** A package of one line, in the form that pip installs. */
const makeWheel = `
import sys, zipfile
with zipfile.ZipFile(sys.argv[1] + "/fenced_tiny-1.0-py3-none-any.whl", "w") as wheel:
    wheel.writestr("fenced_tiny.py", "answer = 42\\n")
    wheel.writestr("fenced_tiny-1.0.dist-info/METADATA", "Metadata-Version: 2.1\\nName: fenced-tiny\\nVersion: 1.0\\n")
    wheel.writestr("fenced_tiny-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
    wheel.writestr("fenced_tiny-1.0.dist-info/RECORD", "fenced_tiny.py,,\\n")
`;

describe("packages that functions need", needs("jupyter2"), () => {
  let directory = "";
  let environment = "";
  beforeAll(async () => {
    directory = await realpath(await mkdtemp(path.join(tmpdir(), "fenced-test-")));
    environment = path.join(directory, "environment");
    await mkdir(path.join(directory, "wheels"));
    const shared = jupyterPythons.jupyter2;
    await execute(shared, ["-c", makeWheel, path.join(directory, "wheels")]);
    // An environment that sees another one's server, so that packages can be installed into it.
    await execute(shared, ["-m", "venv", environment]);
    const { stdout } = await execute(shared, ["-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]);
    const own = path.join(environment, stdout.trim().slice(path.dirname(path.dirname(shared)).length));
    await writeFile(path.join(own, "shared.pth"), stdout);
    const env = { ...process.env, TMPDIR: directory };
    await execute(path.join(environment, "bin/python"), ["-m", "ipykernel", "install", "--sys-prefix"], { env });
  }, 120_000);
  afterAll(() => rm(directory, { recursive: true }));

  const create = (wheels: string) =>
    new JupyterCodeExecutor({
      server: new LocalJupyterServer({ python: path.join(environment, "bin/python") }),
      functions: [
        withRequirements({ pythonPackages: ["fenced-tiny==1.0"], globalImports: ["fenced_tiny"] })(
          'def answer() -> int:\n    """The answer."""\n    return fenced_tiny.answer',
        ),
      ],
      env: { PIP_NO_INDEX: "1", PIP_FIND_LINKS: path.join(directory, wheels), PIP_RETRIES: "0" },
    });

  it("are named in the error if they cannot be installed", patience, async () => {
    await using executor = create("none");
    const run = executor.executeCodeBlocks([python("print(answer())")]);
    await expect(run).rejects.toThrow(/could not be installed \(fenced-tiny==1\.0\)/);
  });

  it("are installed into the kernel's own Python", patience, async () => {
    await using executor = create("wheels");
    const code = "from functions import answer\nimport fenced_tiny\nprint(answer(), fenced_tiny.__file__)";
    const { output } = await executor.executeCodeBlocks([python(code)]);
    expect(output).toMatch(/^42 .*\/fenced_tiny\.py\n$/);
    expect(output).toContain(`42 ${environment}/`);
  });
});
