import { mkdir, mkdtemp, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { InvalidInputError } from "@fenced/core";
import { jupyterImage, needs } from "@fenced/test-support";
import { relayDaemon, replaceWhileMounted } from "@fenced/test-support/daemon-relay";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { DockerJupyterServer, JupyterCodeExecutor } from "../../src/index.ts";
import { python } from "../support/python.ts";

const image = { baseImage: jupyterImage, labels: { "fenced-test.file": "docker-server-fence" } };
const token = "7e57-token-that-no-code-may-find";

/** Looks for the token wherever programs of the same user can look. */
const search = `import glob, os
secret = "${token.slice(0, 10)}" + "${token.slice(10)}"
found = [name for name, value in os.environ.items() if secret in value]
for pattern in ("/proc/[0-9]*/environ", "/proc/[0-9]*/cmdline"):
    for file in glob.glob(pattern):
        if file.split("/")[2] == str(os.getpid()):
            continue
        try:
            if secret.encode() in open(file, "rb").read():
                found.append(file)
        except OSError:
            pass
for top in (os.path.expanduser("~"), "/tmp", "/workspace"):
    for directory, _, files in os.walk(top):
        for name in files:
            try:
                text = open(os.path.join(directory, name), "rb").read()
            except OSError:
                continue
            if secret.encode() in text or name == "jupyter_cookie_secret":
                found.append(os.path.join(directory, name))
opened = []
for pid in filter(str.isdigit, os.listdir("/proc")):
    command = open("/proc/%s/cmdline" % pid, "rb").read()
    if b"serve.py" in command and b"docker-init" not in command:
        try:
            open("/proc/%s/mem" % pid, "rb").close()
            opened.append(command)
        except OSError:
            pass
print(found, opened)
`;

describe("the server in a container", { ...needs("jupyterDocker"), timeout: 180_000 }, () => {
  let workDir = "";
  beforeAll(async () => {
    workDir = await mkdtemp(path.join(tmpdir(), "fenced-test-"));
  });
  afterAll(() => rm(workDir, { recursive: true, force: true }));

  it.each(["none", "open"] as const)("keeps its token from the code, with network %j", async (network) => {
    await using server = new DockerJupyterServer({ ...image, token, network });
    await using executor = new JupyterCodeExecutor({ server });
    // The kernel keeps the source of its cells, which names the token in two pieces.
    expect((await executor.executeCodeBlocks([python(search)])).output).toBe("[] []\n");
  });

  it("lets no setuid program into its work directory, names its user, and installs packages", async () => {
    const containerName = `fenced-test-${process.pid}`;
    const options = { ...image, workDir, network: "none", user: "0:0", containerName } as const;
    await using server = new DockerJupyterServer(options);
    await using executor = new JupyterCodeExecutor({ server });
    const { output } = await executor.executeCodeBlocks([
      { language: "sh", code: "cp /bin/sh sh && chmod 4755 sh; getent hosts $(hostname)" },
    ]);
    expect(output).toMatch(new RegExp(`Operation not permitted\\n127\\.0\\.0\\.1 +${containerName}\n$`));
    expect((await stat(path.join(workDir, "sh"))).mode & 0o6000).toBe(0);
  });

  it("gives code a user with a name, whose packages a cell can import at once", async () => {
    await using server = new DockerJupyterServer({ ...image, network: "none", user: "1234:1234" });
    await using executor = new JupyterCodeExecutor({ server });
    const code = `import getpass, os, pwd, site, subprocess, sys
print(getpass.getuser(), pwd.getpwuid(os.getuid()).pw_name)
target = site.getusersitepackages()
print(target in sys.path, os.environ["PIP_BREAK_SYSTEM_PACKAGES"])
open(os.path.join(target, "later.py"), "w").write("X = 5")
import later
print(later.X)
import shutil
sys.path.remove(target)
`;
    expect((await executor.executeCodeBlocks([python(code)])).output).toBe("sandbox sandbox\nTrue 1\n5\n");
    const next = "import sys; print(target in sys.path)";
    expect((await executor.executeCodeBlocks([python(next)])).output).toBe("True\n");
  });

  it("says that a kernel ran out of memory, and the limit", async () => {
    await using server = new DockerJupyterServer({ ...image, network: "none", memoryBytes: 268_435_456 });
    await using executor = new JupyterCodeExecutor({ server });
    const code =
      "import time\nprint('start', flush=True)\ntime.sleep(2)\nheld = bytearray(500_000_000)\nheld[::4096] = b'x' * len(held[::4096])";
    const first = await executor.executeCodeBlocks([python(code)]);
    expect(first.output).toMatch(/^start\n[^]*container ran out of memory \(limit: 256 MiB\)/);
    const second = await executor.executeCodeBlocks([python("import os\nos._exit(3)")]);
    expect(second.output).not.toMatch(/limit|container/);
  });

  it("does not get a work directory that is replaced between the check and the mount", async () => {
    const replaced = path.join(workDir, "replaced");
    await mkdir(replaced);
    await using daemon = await relayDaemon("/var/run/docker.sock", replaceWhileMounted(replaced));
    const options = { ...image, docker: daemon.address, workDir: replaced, network: "none" } as const;
    const executor = new JupyterCodeExecutor({ server: new DockerJupyterServer(options) });
    await expect(executor.start()).rejects.toThrow(/replaced was replaced by something else when it was mounted/);
  });

  it("does not mount the directory of a container daemon's socket", async () => {
    const executor = new JupyterCodeExecutor({ server: new DockerJupyterServer({ ...image, workDir: "/run" }) });
    await expect(executor.start()).rejects.toSatisfy(
      (error: unknown) => InvalidInputError.isInstance(error) && /socket of a container daemon/.test(error.message),
    );
  });
});
