import { chmod, mkdtemp, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { BackendUnavailableError, InvalidInputError, loadComponent } from "@fenced/core";
import { needs } from "@fenced/test-support";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { DockerCommandLineCodeExecutor } from "../src/index.ts";
import { createExecutor, inspect, printed, run } from "./support/create-executor.ts";
import { docker } from "./support/docker-cli.ts";
import { pythonImage } from "./support/images.ts";

const importModule = async () => ({ DockerCommandLineCodeExecutor });
const root = process.getuid?.() === 0;
let directory = "";
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), "fenced-test-"));
  await chmod(directory, 0o755);
});
afterAll(async () => {
  await rm(directory, { recursive: true });
});

describe("options in the container", needs("docker"), () => {
  it("the container is hardened by default", async () => {
    await using executor = createExecutor();
    await executor.start();
    expect(await inspect(executor, ".HostConfig")).toMatchObject({
      AutoRemove: true,
      Init: true,
      CapDrop: ["ALL"],
      SecurityOpt: ["no-new-privileges", expect.stringMatching(/^seccomp=\{/)],
      Memory: 1_073_741_824,
      MemorySwap: 1_073_741_824,
      PidsLimit: 512,
      Privileged: false,
      ReadonlyRootfs: false,
      LogConfig: { Type: "none" },
    });
    const status = await printed(executor, "bash", "grep -E '^(Cap(Eff|Prm|Bnd)|NoNewPrivs|Uid):' /proc/self/status");
    expect(status).toContain("CapEff:\t0000000000000000");
    expect(status).toContain("CapBnd:\t0000000000000000");
    expect(status).toContain("NoNewPrivs:\t1");
    expect(status).toContain(`Uid:\t${root ? 65_534 : process.getuid?.()}`);
    const sockets = "import glob; print(glob.glob('/run/*.sock') + glob.glob('/var/run/*.sock'))";
    expect(await printed(executor, "python", sockets)).toBe("[]");
    expect(await printed(executor, "bash", "cat /proc/1/comm")).toMatch(/init|tini/);
  });

  it("the README shows the defaults as the daemon reports them", async () => {
    await using executor = createExecutor();
    await executor.start();
    const rows = await readmeRows();
    expect(rows.length).toBeGreaterThan(15);
    for (const [template = "", value = ""] of rows) {
      const shown: unknown = JSON.parse(value);
      const expected = template === ".Config.User" && !root ? `${process.getuid?.()}:${process.getgid?.()}` : shown;
      expect([template, await inspect(executor, template)]).toEqual([template, expected]);
    }
  });

  it("hardened: false keeps the daemon's default capabilities and limits", async () => {
    await using executor = createExecutor({ hardened: false });
    expect(await printed(executor, "bash", "grep NoNewPrivs /proc/self/status")).toBe("NoNewPrivs:\t0");
    expect(await inspect(executor, ".HostConfig")).toMatchObject({ CapDrop: null, SecurityOpt: null, Memory: 0 });
    expect(await printed(executor, "bash", "id -u")).toBe(String(process.getuid?.()));
  });

  it("containerName names the container", async () => {
    const containerName = `fenced-test-${process.pid}-named`;
    await using executor = createExecutor({ containerName });
    await executor.start();
    expect(executor.containerName).toBe(containerName);
    expect(await inspect(executor, ".Name")).toBe(`/${containerName}`);
    await expect(createExecutor({ containerName }).start()).rejects.toSatisfy(
      (error: unknown) => InvalidInputError.isInstance(error) && /reuse: true/.test(error.message),
    );
  });

  it("memoryBytes, cpus and pidsLimit limit the container", async () => {
    await using executor = createExecutor({ memoryBytes: 67_108_864, cpus: 0.5, pidsLimit: 40 });
    await executor.start();
    const limits = { Memory: 67_108_864, MemorySwap: 67_108_864, NanoCpus: 500_000_000, PidsLimit: 40 };
    expect(await inspect(executor, ".HostConfig")).toMatchObject(limits);
    // Control groups of version 2, else of version 1. The fault tests cover the other two limits.
    const quota =
      "cat /sys/fs/cgroup/cpu.max 2>/dev/null || (cd /sys/fs/cgroup/cpu && cat cpu.cfs_quota_us cpu.cfs_period_us)";
    const [most, period] = (await printed(executor, "bash", quota)).split(/\s/).map(Number);
    expect([most, period]).toEqual([50_000, 100_000]);
  });

  it("network: none leaves only the loopback interface", async () => {
    await using executor = createExecutor({ network: "none" });
    expect(await printed(executor, "python", "import os; print(os.listdir('/sys/class/net'))")).toBe("['lo']");
  });

  it("labels are set on the container", async () => {
    await using executor = createExecutor({ labels: { tenant: "42", "io.fenced.executor": "mine" } });
    await executor.start();
    const labels = await inspect(executor, ".Config.Labels");
    expect(labels).toMatchObject({ tenant: "42" });
    expect(
      await docker("ps", "--quiet", "--filter", "label=tenant=42", "--filter", `name=${executor.containerName}`),
    ).not.toBe("");
  });

  it("extraHosts can be resolved", async () => {
    await using executor = createExecutor({ extraHosts: { "model.test": "192.0.2.7" } });
    const code = "import socket; print(socket.gethostbyname('model.test'))";
    expect(await printed(executor, "python", code)).toBe("192.0.2.7");
  });

  it("extraVolumes are mounted, read-only on request", async () => {
    await writeFile(join(directory, "data.txt"), "of the host");
    const volume = `fenced-test-${process.pid}`;
    try {
      await using executor = createExecutor({
        extraVolumes: { [directory]: { bind: "/data", mode: "ro" }, [volume]: { bind: "/named" } },
      });
      expect(await printed(executor, "bash", "cat /data/data.txt; grep -c ' /named ' /proc/mounts")).toBe(
        "of the host1",
      );
      expect((await run(executor, "bash", "touch /data/new")).output).toMatch(/Read-only/);
      await executor.stop();
      expect(await docker("volume", "ls", "--quiet", "--filter", `name=${volume}`)).toBe(volume);
    } finally {
      await docker("volume", "rm", volume);
    }
  });

  it("deviceRequests and runtime reach the daemon, whose error names what it lacks", async () => {
    const unavailable = (reason: RegExp) => (error: unknown) =>
      BackendUnavailableError.isInstance(error) && reason.test(error.message);
    const gpu = createExecutor({ deviceRequests: [{ driver: "no-such-gpu", count: -1, capabilities: [["gpu"]] }] });
    await expect(gpu.start()).rejects.toSatisfy(unavailable(/no-such-gpu/));
    const runtime = createExecutor({ runtime: "no-such-runtime" });
    await expect(runtime.start()).rejects.toSatisfy(unavailable(/no-such-runtime/));
    await using executor = createExecutor({ runtime: "runc" });
    await executor.start();
    expect(await inspect(executor, ".HostConfig.Runtime")).toBe("runc");
  });

  it("initCommand runs before each block, in the same shell", async () => {
    await using executor = createExecutor({ initCommand: "export GREETING=hello # a comment" });
    const code = "import os; print(os.environ['GREETING'])";
    expect(await printed(executor, "python", code)).toBe("hello");
    expect(await printed(executor, "bash", "echo $GREETING")).toBe("hello");
    await using failing = createExecutor({ initCommand: "echo not ready; (exit 3)" });
    const result = await run(failing, "python", "print('ran')");
    expect([result.exitCode, result.output]).toEqual([3, "not ready\n"]);
  });

  it("user sets the user that runs the code", async () => {
    await using executor = createExecutor({ user: "1234:2345" });
    expect(await printed(executor, "bash", "id -u; id -g; touch made")).toBe("1234\n2345");
  });

  it("readOnlyRootFilesystem keeps the workspace and /tmp writable", async () => {
    await using executor = createExecutor({ readOnlyRootFilesystem: true, user: "0:0" });
    const code =
      'for place in /etc/made made /tmp/made "$HOME/made"; do (: >"$place") 2>/dev/null && echo "$place"; done';
    const places = (await printed(executor, "bash", `${code}; true`)).split("\n");
    expect(places.slice(0, 2)).toEqual(["made", "/tmp/made"]);
    expect(places).not.toContain("/etc/made");
    expect(places).toHaveLength(3);
  });

  it("readOnlyRootFilesystem lets later blocks run when /tmp is full", async () => {
    await using executor = createExecutor({ readOnlyRootFilesystem: true, memoryBytes: 100_000_000 });
    const filling = await run(executor, "bash", "head -c 200000000 /dev/zero >/tmp/full; stat -c %s /tmp/full");
    expect(filling.stderr).toMatch(/No space left on device/);
    expect(Number(filling.stdout)).toBeLessThan(51_000_000);
    expect(await printed(executor, "python", "print(6 * 7)")).toBe("42");
    expect(await printed(executor, "bash", "rm /tmp/full; echo freed")).toBe("freed");
  });

  it("languages adds and replaces commands", async () => {
    await using executor = createExecutor({
      languages: {
        shout: { extension: "txt", command: ["tr", "-d", "x"] },
        python: { extension: "py", command: ["cat"] },
      },
    });
    await executor.start();
    expect(executor.capabilities.languages).toEqual(["python", "bash", "sh", "shout"]);
    expect(await printed(executor, "python", "not run")).toBe("not run");
  });

  it("a block in a language that the image lacks fails with an explanation", async () => {
    await using executor = createExecutor();
    const result = await run(executor, "javascript", "1");
    expect([result.exitCode, result.output]).toEqual([
      1,
      expect.stringMatching(/the image fenced-test:python has no "node"/),
    ]);
  });

  it("workDir may have a path that is too long for a socket address", async () => {
    await using executor = createExecutor({ workDir: join(directory, "long".repeat(50)) });
    expect(await printed(executor, "python", "print('here')")).toBe("here");
  });

  it("root changes no modes of the machine's files in /proc", needs("root"), async () => {
    await using executor = createExecutor({ workDir: join(directory, "root"), user: "0:0" });
    // The modes stay the same even where it succeeds.
    const code = `
import os, stat
for name in os.listdir("/proc"):
    place = "/proc/" + name
    try:
        # What the daemon hides is a device file of the container's own.
        hidden = os.path.islink(place) or stat.S_ISCHR(os.stat(place).st_mode)
        if not name.isdigit() and not hidden:
            os.chmod(place, stat.S_IMODE(os.stat(place).st_mode))
            print(name)
    except OSError: pass
print("done")`;
    expect(await printed(executor, "python", code)).toBe("done");
  });

  it("workDir holds what blocks write, which belongs to the directory's owner", async () => {
    await using executor = createExecutor({ workDir: join(directory, "work") });
    await printed(executor, "bash", "mkdir sub; echo made > sub/made.txt");
    const { uid, gid } = await stat(join(directory, "work"));
    expect(await stat(join(directory, "work/sub/made.txt"))).toMatchObject({ uid, gid });
  });
});

/** The rows of the README's table of what `docker inspect` shows. */
async function readmeRows(): Promise<(string | undefined)[][]> {
  const readme = await readFile(join(import.meta.dirname, "../README.md"), "utf8");
  return [...readme.matchAll(/^\| `(\.[\w.]+)` +\| `([^`]+)` +\|/gm)].map(([, template, value]) => [template, value]);
}

describe("invalid options", () => {
  it.each([
    [{ image: "" }],
    [{ memoryBytes: 1024 }],
    [{ cpus: 0 }],
    [{ pidsLimit: 1 }],
    [{ containerName: "no/name" }],
    [{ reuse: true }],
    [{ bindDir: "/somewhere" }],
    [{ docker: "ftp://somewhere" }],
    [{ docker: { host: "tcp://127.0.0.1:1", certPath: "/nowhere" } }],
    [{ extraVolumes: { data: { bind: "relative" } } }],
    [{ extraVolumes: { "/var/run/docker.sock": { bind: "/run/docker.sock" } } }],
  ])("throw InvalidInputError: %j", (options) => {
    expect(() => new DockerCommandLineCodeExecutor({ image: pythonImage, ...options })).toThrow(
      expect.objectContaining({ code: "invalid_input" }),
    );
  });

  it("throw an error that names the option and what is wrong with it", () => {
    const make = (options: object) => () => Reflect.construct(DockerCommandLineCodeExecutor, [options]) as unknown;
    expect(make({ nework: "none" })).toThrow('unknown option "nework". Did you mean "network"?');
    expect(make({ network: "" })).toThrow('"network" is empty.');
    expect(make({ network: null })).toThrow('"network" is null. It must be "none", "open"');
    expect(make({ timeout: 60 })).toThrow('Did you mean "timeoutMs", in milliseconds?');
    expect(make({ bindDir: "/x" })).toThrow(
      '"bindDir" is not valid. It needs `workDir`, the path of the same directory on this machine.',
    );
    expect(make({ docker: { host: "tcp://x", cert: "/y" } })).toThrow('unknown option "docker.cert"');
  });

  it("do not include the daemon's socket for a container that is not hardened", () => {
    const extraVolumes = { "/var/run/docker.sock": { bind: "/run/docker.sock" } };
    expect(() => new DockerCommandLineCodeExecutor({ hardened: false, extraVolumes })).not.toThrow();
  });
});

describe("dump and load", () => {
  it("keep every option that is plain data", async () => {
    const config = {
      image: "i",
      pull: "never",
      containerName: "name",
      reuse: true,
      workDir: "w",
      bindDir: "/b",
      autoRemove: false,
      stopContainer: false,
      deviceRequests: [{ driver: "nvidia", count: -1, deviceIds: ["0"], capabilities: [["gpu"]], options: { a: "b" } }],
      extraVolumes: { v: { bind: "/v", mode: "ro" } },
      extraHosts: { h: "192.0.2.1" },
      initCommand: "true",
      network: "none",
      memoryBytes: 10_000_000,
      cpus: 2,
      pidsLimit: 50,
      user: "1:1",
      readOnlyRootFilesystem: true,
      runtime: "runsc",
      hardened: false,
      languages: { ruby: { extension: "rb", command: ["ruby"] } },
      cleanupTempFiles: false,
      docker: "unix:///nowhere.sock",
      timeoutMs: 1,
      maxOutputBytes: 2,
      env: { A: "b" },
      functionsModule: "tools",
    };
    const model = { ...new DockerCommandLineCodeExecutor().dumpComponent(), config };
    const loaded = await loadComponent<DockerCommandLineCodeExecutor>(model, { importModule });
    expect(loaded.dumpComponent()).toEqual(model);
  });

  it("reject onPullProgress and unknown options", async () => {
    const executor = new DockerCommandLineCodeExecutor({ onPullProgress: () => {} });
    expect(() => executor.dumpComponent()).toThrow(/onPullProgress/);
    const model = { ...new DockerCommandLineCodeExecutor().dumpComponent(), config: { privileged: true } };
    await expect(loadComponent(model, { importModule })).rejects.toThrow(/privileged/);
  });
});
