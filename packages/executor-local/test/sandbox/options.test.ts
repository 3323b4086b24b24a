import { execFile } from "node:child_process";
import { once } from "node:events";
import { mkdir, readdir, readFile, rename, rm, symlink, writeFile } from "node:fs/promises";
import net from "node:net";
import path from "node:path";
import { promisify } from "node:util";
import { connectExecutor } from "@fenced/core";
import { LocalCommandLineCodeExecutor, type LocalExecutorOptions } from "@fenced/executor-local";
import { needs } from "@fenced/test-support";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { printed, sandboxed } from "../support/local-executor.ts";
import { bubblewrapsOf, killSandbox } from "../support/sandbox-subject.ts";
import { temporaryDirectory } from "../support/temporary-directory.ts";

describe("packages in a sandbox", needs("bubblewrap", "python3"), () => {
  it.each([{}, { warm: {} }, { stateful: true }] as const)(
    "can be imported by the block that installs them, with %j",
    async (options) => {
      const executor = sandboxed(options);
      onTestFinished(() => executor.stop());
      const code = `import os, site
print(os.environ["PIP_BREAK_SYSTEM_PACKAGES"])
open(os.path.join(site.getusersitepackages(), "later.py"), "w").write("X = 5")
import later
print(later.X)`;
      expect(await printed(executor, "python", code)).toBe("1\n5\n");
    },
  );
});

describe("sandbox options", () => {
  it.each([
    [{ network: "none" }, '"network" is not valid. It needs `isolation: "os-sandbox"`'],
    [{ isolation: "none", readable: ["/srv"] }, 'needs `isolation: "os-sandbox"`'],
    [{ isolation: "os-sandbox", readable: ["/proc/1"] }, "must not be in /proc"],
    [{ isolation: "os-sandbox", writable: ["/"] }, "must not be /: the sandbox has its own"],
    [{ isolation: "os-sandbox", workDir: "/tmp" }, "must not be /tmp"],
    [{ isolation: "os-sandbox", memoryBytes: 1000 }, "must be a whole number of bytes, at least 33554432"],
    [{ isolation: "os-sandbox", pidsLimit: 1 }, "must be a whole number, at least 16"],
    [{ network: { allow: ["pypi.org"] } }, 'needs `isolation: "os-sandbox"`: without a sandbox it cannot be enforced'],
    [{ isolation: "os-sandbox", network: "bridge" }, 'must be "none", "open" or `{ allow: [hosts] }`'],
    [{ isolation: "os-sandbox", network: { allow: ["https://x"] } }, '"network.allow[0]"'],
    [{ warm: { preload: ["no module"] } }, "must be the name of a Python module"],
    [{ isolation: "os-sandbox", warm: { preload: "numpy" } }, '"warm'],
    [{ outputDir: "plots" }, "needs `stateful: true`"],
    [{ isolation: "os-sandbox", outputDir: "plots" }, "needs `stateful: true`"],
    [{ isolation: "sandbox" }, 'must be "none" or "os-sandbox"'],
  ])("are checked: %j", (options, message) => {
    expect(() => {
      Reflect.construct(LocalCommandLineCodeExecutor, [options]);
    }).toThrow(message);
  });

  it("are kept in a dumped component, and the capabilities name the isolation", () => {
    const options = { isolation: "os-sandbox", network: "open", pidsLimit: 100, warm: { preload: ["json"] } } as const;
    const executor = new LocalCommandLineCodeExecutor(options);
    expect(executor.dumpComponent().config).toEqual(options);
    expect(executor.capabilities.isolation).toBe("os-sandbox");
    expect(new LocalCommandLineCodeExecutor().capabilities.isolation).toBe("none");
  });
});

describe("a sandbox", needs("python3", "bash", "bubblewrap"), () => {
  it("shows readable paths, lets code change writable ones, and hides what is next to them", async () => {
    const directory = await temporaryDirectory();
    for (const name of ["read", "write", "hidden"]) {
      await mkdir(path.join(directory, name));
      await writeFile(path.join(directory, name, "file"), name);
    }
    const [readable, writable] = ["read", "write"].map((name) => path.join(directory, name));
    await using executor = sandboxed({ readable: [readable ?? ""], writable: [writable ?? ""] });
    const code = `cd ${directory}; cat read/file write/file; echo; echo changed > write/file; (echo changed > read/file) 2>/dev/null || echo refused; ls`;
    expect(await printed(executor, "bash", code)).toBe("readwrite\nrefused\nread\nwrite\n");
    expect(await readFile(path.join(directory, "write/file"), "utf8")).toBe("changed\n");
    expect(await readFile(path.join(directory, "read/file"), "utf8")).toBe("read");
  });

  it("shows a readable part of the workspace, but not through a link that code may have made", async () => {
    const workDir = await temporaryDirectory();
    await mkdir(path.join(workDir, "kept"));
    const readable = [path.join(workDir, "kept")];
    {
      await using executor = sandboxed({ workDir, readable });
      expect(await printed(executor, "bash", "touch kept/new 2>&1; echo $?")).toMatch(/Read-only file system\n1\n$/);
    }
    await symlink("/etc", path.join(workDir, "link"));
    await using executor = sandboxed({ workDir, readable: [path.join(workDir, "link")] });
    await expect(executor.start()).rejects.toThrow(/is reached through a symbolic link in .* Pass the path/);
  });

  it("is not replaced by one that follows a link which code has put in place of a shared path", async () => {
    const workDir = await temporaryDirectory();
    await mkdir(path.join(workDir, "part/kept"), { recursive: true });
    await using executor = sandboxed({ workDir, readable: [path.join(workDir, "part/kept")] });
    const up = "../".repeat(path.join(workDir, "part").split("/").length - 1);
    const code = `mv part moved && mkdir part && ln -s ${up}etc part/kept && ls part/kept/passwd`;
    expect(await printed(executor, "bash", code)).toBe("part/kept/passwd\n");
    await killSandbox(await bubblewrapsOf(executor));
    const next = async (): Promise<string> => printed(executor, "bash", "cat /etc/passwd");
    // Until the loss of the sandbox is noticed, blocks fail because of it.
    await expect.poll(() => next().catch(String), { timeout: 60_000 }).toMatch(/is reached through a symbolic link in/);
    await rm(path.join(workDir, "part"), { recursive: true });
    await rename(path.join(workDir, "moved"), path.join(workDir, "part"));
    expect(await next()).toMatch(/^sandbox:/);
  });

  it("does not start if a shared path is replaced after it was checked", async () => {
    const directory = await temporaryDirectory();
    const [shown, programs] = [path.join(directory, "shown"), path.join(directory, "bin")];
    await mkdir(shown);
    await mkdir(programs);
    // Replaces it at the last moment, like code in another sandbox that can write to the directory around it.
    const replacing = `#!/bin/sh\nmv ${shown} ${shown}-aside && ln -s /etc ${shown}\nexec /usr/bin/bwrap "$@"\n`;
    await writeFile(path.join(programs, "bwrap"), replacing, { mode: 0o755 });
    await using executor = sandboxed({ readable: [shown], env: { PATH: `${programs}:/usr/bin:/bin` } });
    await expect(executor.start()).rejects.toThrow(/something replaced .*shown.* Nothing was run/);
  });

  it("never lets the host write through a link, even if code can write to the temporary directory", async () => {
    const directory = await temporaryDirectory();
    const [shown, victim] = [path.join(directory, "shown"), path.join(directory, "victim")];
    await mkdir(path.join(shown, "tmp"), { recursive: true });
    await mkdir(victim);
    vi.stubEnv("TMPDIR", path.join(shown, "tmp"));
    onTestFinished(() => {
      vi.unstubAllEnvs();
    });
    await using executor = sandboxed({ writable: [shown] });
    const code = `for each in ${shown}/tmp/fenced-*; do rm -rf $each/etc; ln -s ${victim} $each/etc && echo linked; done`;
    expect(await printed(executor, "bash", code)).toBe("linked\n");
    await killSandbox(await bubblewrapsOf(executor));
    const next = async (): Promise<string> => printed(executor, "bash", "head -n 1 /etc/passwd");
    // Until the loss of the sandbox is noticed, blocks fail because of it.
    await expect.poll(() => next().catch(String), { timeout: 60_000 }).toMatch(/^sandbox:/);
    expect(await readdir(victim)).toEqual([]);
  });

  it("does not save rich outputs where code can replace them", async () => {
    const directory = await temporaryDirectory();
    const outputDir = path.join(directory, "shown");
    await using executor = sandboxed({ writable: [directory], stateful: true, outputDir });
    await expect(executor.start()).rejects.toThrow(/outputDir .* is in or leads through .*, which the code can change/);
  });

  it("resolves relative shared paths when it is created", async () => {
    const directory = await temporaryDirectory();
    await writeFile(path.join(directory, "file"), "shared");
    const readable = [path.relative(process.cwd(), directory)];
    await using executor = sandboxed({ readable });
    const spy = vi.spyOn(process, "cwd").mockReturnValue("/");
    onTestFinished(() => {
      spy.mockRestore();
    });
    expect(await printed(executor, "bash", `cat ${directory}/file`)).toBe("shared");
  });

  it("names a shared path that is missing", async () => {
    await using executor = sandboxed({ readable: ["/no/such/directory"] });
    await expect(executor.start()).rejects.toThrow(/\/no\/such\/directory cannot be shared .*`readable`/);
  });

  it("runs all blocks in one sandbox, where they share /tmp, the loopback interface and processes", async () => {
    await using executor = sandboxed();
    const server = `import http.server, threading\nopen("/tmp/shared", "w").write("shared")\nprint("ready", flush=True)\nhttp.server.HTTPServer(("127.0.0.1", 8000), http.server.SimpleHTTPRequestHandler).serve_forever()`;
    await executor.executeCodeBlocks([
      {
        language: "bash",
        code: `cat > server.py <<'END'\n${server}\nEND\npython3 server.py > log 2>&1 & until grep -q ready log; do :; done`,
      },
    ]);
    const client = `import time, urllib.request\nfor _ in range(1200):\n    try:\n        text = urllib.request.urlopen("http://127.0.0.1:8000/server.py").read()\n        break\n    except OSError:\n        time.sleep(0.05)\nprint(open("/tmp/shared").read(), b"serve_forever" in text)`;
    expect(await printed(executor, "python", client)).toBe("shared True\n");
    await executor.restart();
    expect(await printed(executor, "bash", "pgrep -fc '[s]erver.py'; ls /tmp/shared server.py")).toContain("0\n");
  });

  it('reaches the host\'s network only with network: "open"', async () => {
    const server = net.createServer((socket) => socket.end("hello"));
    await once(server.listen(0, "127.0.0.1"), "listening");
    const address = server.address();
    const port = typeof address === "object" && address !== null ? address.port : 0;
    const code = `import socket\nprint(socket.create_connection(("127.0.0.1", ${port}), 60).recv(9))`;
    await using open = sandboxed({ network: "open" });
    await using closed = sandboxed();
    expect(await printed(open, "python", code)).toBe("b'hello'\n");
    expect(await printed(closed, "python", code)).toContain("Connection refused");
    await once(server.close(), "close");
  });

  it("shows a program that is in a project's bin, or its virtual environment, but not the project", async () => {
    const project = await temporaryDirectory();
    await mkdir(path.join(project, "tools/bin"), { recursive: true });
    await writeFile(path.join(project, "tools/.env"), "SECRET=1");
    await writeFile(path.join(project, "tools/bin/greet"), "#!/bin/sh\necho hello; cat .env ../.env\n", {
      mode: 0o755,
    });
    await promisify(execFile)("/usr/bin/python3", ["-m", "venv", "--without-pip", project]);
    await writeFile(path.join(project, ".env"), "SECRET=2");
    const [bin, env] = [path.join(project, "tools/bin"), { PATH: `${project}/tools/bin:/usr/bin:/bin` }];
    const languages = { greeting: { extension: "txt", command: ["greet"] } } as const;
    await using executor = sandboxed({ env, languages, virtualEnv: project });
    expect(await printed(executor, "greeting", "x")).toMatch(/^hello\n/);
    expect(await printed(executor, "bash", `cat ${bin}/../.env ${project}/.env`)).not.toContain("SECRET");
    expect(await printed(executor, "python", "import sys; print(sys.prefix)")).toBe(`${project}\n`);
  });

  it("asks no Python outside that loads its library from where code can write", async () => {
    const directory = await temporaryDirectory();
    const workDir = path.join(directory, "work");
    const virtualEnv = path.join(directory, "env");
    await promisify(execFile)("/usr/bin/python3", ["-m", "venv", "--without-pip", "--copies", virtualEnv]);
    const [version = ""] = await readdir(path.join(virtualEnv, "lib"));
    const library = path.join(workDir, "base/lib", version, "encodings");
    await mkdir(library, { recursive: true });
    await mkdir(path.join(workDir, "base/bin"));
    const escaped = path.join(directory, "escaped");
    await writeFile(path.join(library, "__init__.py"), `import posix; posix.mkdir(${JSON.stringify(escaped)})\n`);
    for (const name of ["os.py", "site.py"]) await writeFile(path.join(library, "..", name), "");
    await writeFile(path.join(virtualEnv, "pyvenv.cfg"), `home = ${workDir}/base/bin\n`);
    await using executor = sandboxed({ workDir, virtualEnv });
    expect(await printed(executor, "bash", "echo started")).toBe("started\n");
    expect(await readdir(directory)).toEqual(["env", "work"]);
  });

  it.each([{}, { keepAliveMs: 60_000 }])(
    "runs no program outside from a directory of the PATH that code can write to, with %j",
    async (options) => {
      const directory = await temporaryDirectory();
      const workDir = path.join(directory, "work");
      const [inside, shims] = [path.join(workDir, "bin"), path.join(directory, "shims")];
      for (const each of [inside, shims]) await mkdir(each, { recursive: true });
      const escaped = path.join(directory, "escaped");
      for (const name of ["sh", "bash", "cat", "python3", "bwrap"]) {
        const evil = `#!/bin/sh\n/bin/echo ${name} >> ${escaped}\nexec /usr/bin/${name} "$@"\n`;
        await writeFile(path.join(inside, name), evil, { mode: 0o755 });
      }
      // As a version manager has it.
      const shim = `#!/usr/bin/env bash\nexec /usr/bin/python3 "$@"\n`;
      await writeFile(path.join(shims, "python3"), shim, { mode: 0o755 });
      vi.stubEnv("PATH", `${inside}:${shims}:/usr/bin:/bin`);
      onTestFinished(() => {
        vi.unstubAllEnvs();
      });
      await using executor = sandboxed({ workDir, ...options });
      const code = "echo > started";
      expect((await executor.executeCodeBlocks([{ language: "sh", code }])).exitCode).toBe(0);
      if (executor.handle) {
        const { handle } = executor;
        await executor.detach();
        const importModule = (): Promise<unknown> => import("@fenced/executor-local");
        await using again = await connectExecutor(handle, { importModule });
        await again.executeCodeBlocks([{ language: "sh", code }]);
      }
      await expect(readFile(escaped, "utf8")).rejects.toThrow("ENOENT");
    },
  );

  it("runs the Python of a virtual environment, but outside the sandbox none that code may have changed", async () => {
    const directory = await temporaryDirectory();
    const trusted = path.join(directory, "venv");
    await promisify(execFile)("/usr/bin/python3", ["-m", "venv", "--without-pip", trusted]);
    {
      await using executor = sandboxed({ virtualEnv: trusted });
      expect(await printed(executor, "python", "import sys; print(sys.prefix)")).toBe(`${trusted}\n`);
    }
    const workDir = path.join(directory, "work");
    await mkdir(workDir);
    const inside = path.join(workDir, "venv");
    await promisify(execFile)("/usr/bin/python3", ["-m", "venv", "--without-pip", inside]);
    const evil = `#!/bin/sh\ntouch ${path.join(directory, "escaped")}\nexec /usr/bin/python3 "$@"\n`;
    await promisify(execFile)("rm", [path.join(inside, "bin/python3"), path.join(inside, "bin/python")]);
    for (const name of ["python", "python3"]) await writeFile(path.join(inside, "bin", name), evil, { mode: 0o755 });
    await using executor = sandboxed({ workDir, virtualEnv: inside });
    expect(await printed(executor, "python", "print(1 + 1)")).toContain("2\n");
    await expect(readFile(path.join(directory, "escaped"))).rejects.toThrow("ENOENT");
    // Nor is it run by a later session, to which the directory means nothing else.
    const later = path.join(directory, "later");
    await mkdir(later);
    await using other = sandboxed({ workDir: later, virtualEnv: inside });
    await printed(other, "bash", "echo started");
    await expect(readFile(path.join(directory, "escaped"))).rejects.toThrow("ENOENT");
  });

  it("runs shell blocks, too, after one has removed the directory where their scripts are", async () => {
    await using executor = sandboxed();
    expect(await printed(executor, "sh", 'rm -rf "$(dirname "$0")"; echo removed')).toBe("removed\n");
    expect(await printed(executor, "sh", "echo on")).toBe("on\n");
  });
});

describe("a git worktree as work directory", needs("bubblewrap", "python3", "bash", "git"), () => {
  it("works as the README says: with the main repository's .git, readable or writable", async () => {
    const directory = await temporaryDirectory();
    const [main, workDir] = [path.join(directory, "main"), path.join(directory, "tree")];
    const git = async (...words: string[]): Promise<unknown> =>
      promisify(execFile)("git", ["-c", "user.name=a", "-c", "user.email=a@b", "-C", main, ...words]);
    await mkdir(main);
    await git("init", "--quiet");
    await writeFile(path.join(main, "note"), "one\n");
    await git("add", "note");
    await git("commit", "--quiet", "--message=first");
    await git("worktree", "add", "--quiet", workDir);
    const printedWith = async (options: LocalExecutorOptions, code: string): Promise<string> => {
      await using executor = sandboxed({ workDir, ...options });
      return await printed(executor, "bash", `{ ${code}; } 2>&1`);
    };
    const see = "echo two > note; git status --short; git log --format=%s";
    const commit = "git -c user.name=a -c user.email=a@b commit --quiet --all --message=second";
    const shared = [path.join(main, ".git")];
    expect(await printedWith({}, see)).toMatch(/not a git repository/);
    expect(await printedWith({ readable: shared }, see)).toBe(" M note\nfirst\n");
    expect(await printedWith({ readable: shared }, commit)).toMatch(/Read-only file system/);
    expect(await printedWith({ writable: shared }, `${commit} && git log --format=%s`)).toBe("second\nfirst\n");
  });
});
