import { execFile } from "node:child_process";
import { once } from "node:events";
import { watch } from "node:fs";
import { link, mkdir, mkdtemp, readdir, rm, stat, symlink, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { promisify } from "node:util";
import { BackendUnavailableError, InvalidInputError } from "@fenced/core";
import { needs } from "@fenced/test-support";
import { relayDaemon, replaceWhileMounted } from "@fenced/test-support/daemon-relay";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import { createExecutor, inspect, printed, run } from "./support/create-executor.ts";
import { docker } from "./support/docker-cli.ts";
import { nodeImage, pythonImage } from "./support/images.ts";
import { startPodman } from "./support/podman-service.ts";

/** Each attempt to set the setuid or setgid bit of a file, by its system call; prints those that succeeded. */
const setIds = `import ctypes, os, platform, stat
libc = ctypes.CDLL(None, use_errno=True)
arm = platform.machine() == "aarch64"
calls = {"open": 2, "creat": 85, "chmod": 90, "fchmod": 91, "mknod": 133, "openat": 257, "mknodat": 259, "fchmodat": 268}
if arm:
    calls = {"fchmod": 52, "fchmodat": 53, "mknodat": 33, "openat": 56}
calls.update({"openat2": 437, "fchmodat2": 452, "io_uring_setup": 425})
made = []
for bits in (0o4755, 0o2755):
    how = ctypes.create_string_buffer((os.O_CREAT | os.O_WRONLY).to_bytes(8, "little") + bits.to_bytes(8, "little") + bytes(8))
    for name, number in calls.items():
        file = b"%s-%o" % (name.encode(), bits)
        if "ch" in name:
            os.close(os.open(file, os.O_CREAT, 0o755))
        flags, handle = os.O_CREAT | os.O_WRONLY, os.open(".", os.O_RDONLY)
        held = os.open(file, os.O_RDONLY) if os.path.exists(file) else -1
        arguments = {
            "open": (file, flags, bits), "creat": (file, bits), "chmod": (file, bits), "fchmod": (held, bits),
            "mknod": (file, stat.S_IFREG | bits, 0), "mknodat": (handle, file, stat.S_IFREG | bits, 0),
            "openat": (handle, file, flags, bits), "fchmodat": (handle, file, bits), "fchmodat2": (handle, file, bits, 0),
            "openat2": (handle, file, how, 24), "io_uring_setup": (8, ctypes.create_string_buffer(240)),
        }[name]
        done = libc.syscall(number, *arguments)
        if done >= 0 if name == "io_uring_setup" else os.path.exists(file) and os.stat(file).st_mode & 0o6000:
            made.append(file.decode())
print(made)
os.chmod("chmod-4755" if os.path.exists("chmod-4755") else ".", 0o1777)
open("ordinary", "x").close()
`;

let directory = "";
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), "fenced-test-"));
});
afterAll(async () => {
  await rm(directory, { recursive: true });
});

const refused = (option: string, reason: RegExp) => (error: unknown) =>
  InvalidInputError.isInstance(error) && error.message.includes(option) && reason.test(error.message);
const daemonSocket = /socket of a container daemon/;

describe("a mounted directory", needs("docker"), () => {
  it("gets no setuid or setgid files, whatever system call creates them", async () => {
    const workDir = join(directory, "work");
    const shared = join(directory, "shared");
    await mkdir(shared);
    await using executor = createExecutor({ workDir, extraVolumes: { [shared]: { bind: "/shared" } } });
    expect(await printed(executor, "python", setIds)).toBe("[]");
    expect((await stat(join(workDir, "ordinary"))).isFile()).toBe(true);
    const copied = await run(executor, "sh", "cp /bin/sh /shared/sh && chmod u+s /shared/sh");
    expect(copied.output).toMatch(/Operation not permitted/);
    await using open = createExecutor({ workDir, hardened: false });
    expect(await printed(open, "python", `import os\nos.chdir(os.mkdir("open") or "open")\n${setIds}`)).toMatch(
      /chmod-4755/,
    );
  });

  it("gets none in an image without Python", async () => {
    await using executor = createExecutor({ image: "fenced-test:node", workDir: join(directory, "node") });
    const { output } = await run(executor, "sh", "cp /bin/busybox s && chmod 4755 s");
    expect(output).toMatch(/Operation not permitted/);
  });

  it.each([
    ["has no -c", "exit 1"],
    ["claims that it may not look", 'echo "stat: Permission denied" >&2; exit 1'],
  ])("is refused if an image cannot say which it is, because its stat %s", async (_, program) => {
    const [fake, nothing] = [join(directory, "stat"), join(directory, "nothing")];
    await writeFile(fake, `#!/bin/sh\n${program}\n`, { mode: 0o755 });
    await writeFile(nothing, "", { mode: 0o644 });
    const find = "readlink -f $(command -v python3) $(command -v stat)";
    const found = await docker("run", "--rm", "--network", "none", pythonImage, "sh", "-c", find);
    const [python = "", statProgram = ""] = found.split("\n");
    await using executor = createExecutor({
      image: pythonImage,
      workDir: join(directory, "unknown"),
      extraVolumes: { [nothing]: { bind: python, mode: "ro" }, [fake]: { bind: statProgram, mode: "ro" } },
    });
    await expect(executor.start()).rejects.toThrow(
      /does not say what was mounted at .*`stat` that knows `-L` and `-c`/,
    );
  });

  it("gets none over Podman's API, which wants the filter as a file", needs("podman"), async () => {
    await using podman = await startPodman();
    await using executor = createExecutor({ docker: podman.address, workDir: join(directory, "podman") });
    expect(await printed(executor, "python", setIds)).toBe("[]");
  });

  it(
    "keeps code away from that file, even if the temporary directory is mounted elsewhere",
    needs("podman"),
    async () => {
      await using podman = await startPodman();
      const [temporary, runtime] = [join(directory, "temporary"), join(directory, "runtime")];
      await mkdir(temporary);
      await mkdir(runtime, { mode: 0o700 });
      const made: string[] = [];
      const watchers = [temporary, runtime].map((place) =>
        watch(place, (_event, name) => void made.push(`${basename(place)}/${name?.slice(0, 14)}`)),
      );
      vi.stubEnv("TMPDIR", temporary);
      vi.stubEnv("XDG_RUNTIME_DIR", runtime);
      try {
        await using executor = createExecutor({ docker: podman.address, workDir: join(directory, "podman-elsewhere") });
        expect(await printed(executor, "python", setIds)).toBe("[]");
      } finally {
        vi.unstubAllEnvs();
        for (const watcher of watchers) watcher.close();
      }
      expect(made).toContain("runtime/fenced-seccomp");
      expect(made).not.toContain("temporary/fenced-seccomp");
      expect(await readdir(runtime)).toEqual([]);
    },
  );

  it("keeps the daemon's other restrictions", async () => {
    await using executor = createExecutor();
    const code = `import ctypes
libc = ctypes.CDLL(None, use_errno=True)
def refused(*call):
    ctypes.set_errno(0)
    return libc.syscall(*call) == -1 and ctypes.get_errno() in (1, 38)
import platform
x64 = platform.machine() == "x86_64"
calls = {"unshare": (272, 0x10000000), "keyctl": (250, 0, -3, 0), "bpf": (321, 0, 0, 0), "userfaultfd": (323, 0)} if x64 else {
    "unshare": (97, 0x10000000), "keyctl": (219, 0, -3, 0), "bpf": (280, 0, 0, 0), "userfaultfd": (282, 0)}
print([name for name, call in calls.items() if not refused(*call)])
import socket
try:
    socket.socket(40, socket.SOCK_STREAM)
    print("vsock")
except OSError as error:
    print(error.strerror)
`;
    expect(await printed(executor, "python", code)).toBe("[]\nOperation not permitted");
    expect(await inspect(executor, ".HostConfig.SecurityOpt")).toEqual([
      "no-new-privileges",
      expect.stringMatching(/^seccomp=\{/),
    ]);
  });
});

describe("a work directory", needs("docker", "root"), () => {
  it("on a read-only file system is reported as such", async () => {
    const workDir = await mkdtemp(join(tmpdir(), "fenced-test-"));
    await promisify(execFile)("mount", ["-t", "tmpfs", "-o", "ro", "tmpfs", workDir]);
    try {
      await expect(createExecutor({ workDir }).start()).rejects.toThrow(
        /^The work directory \S+ could not be written to: .*EROFS.* The directory is read-only: set `workDir` to one that can be/,
      );
    } finally {
      await promisify(execFile)("umount", [workDir]);
      await rm(workDir, { recursive: true });
    }
  });
});

describe("a hardened container does not get", needs("docker"), () => {
  it.each(["/var/run/docker.sock", "/run", "/var/run/", "/", "/srv/../run/docker.sock"])(
    "a daemon's socket through %s",
    (source) => {
      expect(() => createExecutor({ extraVolumes: { [source]: { bind: "/mounted" } } })).toThrow(daemonSocket);
    },
  );

  it("a daemon's socket through a link or another name", async () => {
    await symlink("/run", join(directory, "link"));
    await symlink("/var/run/docker.sock", join(directory, "renamed"));
    for (const name of ["link", "renamed"]) {
      const executor = createExecutor({ extraVolumes: { [join(directory, name)]: { bind: "/mounted" } } });
      await expect(executor.start()).rejects.toSatisfy(refused("extraVolumes", daemonSocket));
    }
    await expect(createExecutor({ workDir: "/run" }).start()).rejects.toSatisfy(refused("workDir", daemonSocket));
  });

  it("the socket of the daemon in use, whatever its name", needs("podman"), async () => {
    await using podman = await startPodman();
    const socket = podman.address.replace("unix://", "");
    const other = `${socket}.2`;
    await link(socket, other);
    for (const source of [other, join(socket, "..")]) {
      const executor = createExecutor({ docker: podman.address, extraVolumes: { [source]: { bind: "/mounted" } } });
      await expect(executor.start()).rejects.toSatisfy(refused("extraVolumes", daemonSocket));
    }
  });

  it("a daemon's socket through a named volume", async () => {
    const volume = `fenced-test-${process.pid}-run`;
    await docker("volume", "create", "-o", "type=none", "-o", "o=bind", "-o", "device=/var/run", volume);
    try {
      const executor = createExecutor({ extraVolumes: { [volume]: { bind: "/mounted" } } });
      await expect(executor.start()).rejects.toSatisfy(refused("extraVolumes", daemonSocket));
    } finally {
      await docker("volume", "rm", volume);
    }
  });

  it("a directory in which a program listens, but a socket that is named itself", async () => {
    const place = await mkdtemp(join(tmpdir(), "fenced-test-"));
    const server = createServer((client) => client.end("hello")).listen(join(place, "service"));
    try {
      await once(server, "listening");
      await writeFile(join(place, "data"), "");
      const executor = createExecutor({ extraVolumes: { [place]: { bind: "/mounted", mode: "ro" } } });
      await expect(executor.start()).rejects.toSatisfy(refused("extraVolumes", /service, the socket of a program/));
      await using named = createExecutor({
        user: "0:0",
        extraVolumes: { [join(place, "service")]: { bind: "/service" } },
      });
      const code = "import socket\ns = socket.socket(socket.AF_UNIX)\ns.connect('/service')\nprint(s.recv(9))";
      expect(await printed(named, "python", code)).toBe("b'hello'");
    } finally {
      server.close();
      await rm(place, { recursive: true });
    }
  });
});

describe("a container's user", needs("docker"), () => {
  it("has a name, even if the image knows no such user", async () => {
    const names =
      "import getpass, grp, os, pwd\nprint(getpass.getuser(), pwd.getpwuid(os.getuid()).pw_name, grp.getgrgid(os.getgid()).gr_name)";
    await using executor = createExecutor({ user: "1234:2345" });
    expect(await printed(executor, "python", names)).toBe("sandbox sandbox sandbox");
    expect(await printed(executor, "sh", "whoami; groups; ls -l /etc/passwd /etc/group")).toMatch(
      /^sandbox\nsandbox\n-rw-r--r-- 1 root root .*group\n-rw-r--r-- 1 root root /,
    );
    await using node = createExecutor({ image: "fenced-test:node", user: "1234" });
    expect(await printed(node, "javascript", "console.log(require('os').userInfo().username)")).toBe("sandbox");
    await using known = createExecutor({ user: "33:33" });
    expect(await printed(known, "sh", "whoami")).toBe("www-data");
  });

  it("has a name for programs that ask the environment if the root file system is read-only", async () => {
    await using executor = createExecutor({ user: "1234:1234", readOnlyRootFilesystem: true });
    expect(await printed(executor, "python", "import getpass; print(getpass.getuser())")).toBe("sandbox");
  });

  it("has one over Podman's API, and a home directory outside of the workspace", needs("podman"), async () => {
    await using podman = await startPodman();
    await using executor = createExecutor({ docker: podman.address, image: pythonImage, user: "1234:1234" });
    const code = 'whoami >/dev/null && mkdir -p "$HOME/.cache" && echo cached > "$HOME/.cache/file" && echo "$HOME"';
    expect(await printed(executor, "sh", code)).toMatch(/^\/tmp\/fenced-/);
    expect(await executor.files.list()).toEqual([]);
  });
});

describe("a container", needs("docker"), () => {
  it("has half of its memory in /dev/shm", async () => {
    await using executor = createExecutor({ memoryBytes: 536_870_912 });
    expect(await printed(executor, "sh", "df -k /dev/shm | tail -n 1")).toMatch(/ 262144 /);
  });

  const ownAddress = "import socket; name = socket.gethostname(); print(name, socket.gethostbyname(name))";

  it("has a host name of its own, by which docker finds it, and resolves it without a network", async () => {
    await using executor = createExecutor({ network: "none", extraHosts: { "model.test": "192.0.2.7" } });
    const { containerName } = executor;
    expect(await printed(executor, "python", ownAddress)).toBe(`${containerName} 127.0.0.1`);
    expect(await printed(executor, "sh", "grep -c 192.0.2.7 /etc/hosts")).toBe("1");
    const longName = `fenced_test.${process.pid}-${"x".repeat(60)}`;
    await using long = createExecutor({ network: "none", containerName: longName });
    expect(await printed(long, "python", ownAddress)).toMatch(/^[\d-]*x{60} 127\.0\.0\.1$/);
    await using rough = createExecutor({ network: "none", containerName: `fenced_test.${process.pid}_` });
    expect(await printed(rough, "python", ownAddress)).toBe(`fenced_test.${process.pid} 127.0.0.1`);
  });

  it("resolves it over Podman's API, too", needs("podman"), async () => {
    await using podman = await startPodman();
    await using executor = createExecutor({ docker: podman.address, image: pythonImage, network: "none" });
    expect(await printed(executor, "python", ownAddress)).toBe(`${executor.containerName} 127.0.0.1`);
  });
});

describe(
  "a directory that is replaced between the check and the mount",
  { ...needs("docker"), timeout: 120_000 },
  () => {
    let place = "";
    beforeEach(async () => {
      place = await mkdtemp(join(tmpdir(), "fenced-test-"));
      for (const name of ["data", "work"]) await mkdir(join(place, name));
    });
    afterEach(async () => {
      await rm(place, { recursive: true });
    });
    const inPlace = (name: string): string => join(place, name);
    const swapping = (name: string) => relayDaemon("/var/run/docker.sock", replaceWhileMounted(inPlace(name)));
    const replaced = (name: string) => (error: unknown) =>
      BackendUnavailableError.isInstance(error) &&
      error.message.includes(inPlace(name)) &&
      /was replaced by something else/.test(error.message);

    it.each([
      ["with", pythonImage],
      ["without", nodeImage],
    ])("is refused as an extra volume, in an image %s Python", async (_, image) => {
      await using daemon = await swapping("data");
      const extraVolumes = { [inPlace("data")]: { bind: "/data" } };
      const executor = createExecutor({ image, docker: daemon.address, workDir: inPlace("work"), extraVolumes });
      await expect(executor.start()).rejects.toSatisfy(replaced("data"));
      expect(await docker("ps", "--all", "--quiet", "--filter", `name=${executor.containerName}`)).toBe("");
      // Nothing is wrong with it now.
      await using again = createExecutor({ image, workDir: inPlace("work"), extraVolumes });
      expect(await printed(again, "sh", "touch /data/made && echo made")).toBe("made");
    });

    it("is refused as a work directory, although it has the executor's probe file", async () => {
      await using daemon = await swapping("work");
      const executor = createExecutor({ docker: daemon.address, workDir: inPlace("work") });
      await expect(executor.start()).rejects.toSatisfy(replaced("work"));
      expect(await docker("ps", "--all", "--quiet", "--filter", `name=${executor.containerName}`)).toBe("");
      expect(await readdir(inPlace("work"))).toEqual([]);
    });
  },
);
