import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { chmod, mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import path from "node:path";
import { promisify } from "node:util";
import { describeCodeExecutor, loadComponent } from "@fenced/core";
import { SshCommandLineCodeExecutor } from "@fenced/executor-ssh";
import { needs } from "@fenced/test-support";
import { SshServer } from "@fenced/test-support/ssh-server";
import { describe, expect, it, onTestFinished } from "vitest";
import { bash, create, failure, gone, server } from "./support/server.ts";
import { temporaryDirectory } from "./support/temporary-directory.ts";

const run = promisify(execFile);

/** The message of the error with which a call fails. */
function failureOf(call: Promise<unknown>): Promise<string> {
  return call.then(
    () => "it did not fail",
    (reason: unknown) => String(reason),
  );
}

it("says that code has the network of its host", () => {
  expect(describeCodeExecutor(new SshCommandLineCodeExecutor({ host: "box" }))).toContain(
    "The code has network access.",
  );
});

describe("executor-ssh", needs("ssh", "bash", "python3"), () => {
  describe("a block", () => {
    it("distinguishes the program's own exit code 255 from ssh's, and signals from exit codes", async () => {
      const executor = create();
      expect(await bash(executor, "exit 255")).toMatchObject({ exitCode: 255, output: "" });
      expect(await bash(executor, "kill -TERM $$")).toMatchObject({ exitCode: 143, output: "" });
      expect(await bash(executor, "kill -KILL $$")).toMatchObject({ exitCode: 137, output: "" });
      expect(await bash(executor, "echo done; kill 0")).toMatchObject({ exitCode: 143, stdout: "done\n" });
    });

    it.each([{}, { warm: {} }, { stateful: true }] as const)(
      "can import what pip installs, and leaves no empty directory for it, with %j",
      async (options) => {
        const packages = path.join(server?.directory ?? "", "home", ".local");
        const executor = create(options);
        const code = `import os, site, sys
place = site.getusersitepackages()
print(place in sys.path, place.startswith(${JSON.stringify(packages)}))`;
        const look = { language: "python", code };
        expect((await executor.executeCodeBlocks([look])).output).toBe("True True\n");
        await executor.stop();
        await gone();
        expect(existsSync(packages)).toBe(false);
        await executor.start();
        const installing = `${code}\nopen(os.path.join(place, "later.py"), "w").write("X = 5")\nimport later\nprint(later.X)`;
        expect((await executor.executeCodeBlocks([{ language: "python", code: installing }])).output).toMatch(/5\n$/);
        await executor.stop();
        await gone();
        expect(existsSync(packages)).toBe(true);
        await rm(packages, { recursive: true });
      },
    );

    it("still ends if its code kills the program that watches it", async () => {
      const executor = create();
      const code = `setsid sleep 300 & kill -KILL "$PPID"; sleep 300`;
      expect(await bash(executor, code)).toMatchObject({ exitCode: 137, timedOut: false });
      expect(await programs()).not.toContain("sleep 300");
      expect(await bash(executor, "echo next")).toMatchObject({ exitCode: 0, output: "next\n" });
    });

    it("ends when the workspace exceeds its limit", async () => {
      const executor = create({ maxWorkspaceBytes: 4_194_304 });
      const filling = "while :; do head -c 1048576 /dev/zero >> large; sleep 0.05; done";
      expect(await bash(executor, filling)).toMatchObject({
        exitCode: 153,
        timedOut: false,
        stderr: expect.stringMatching(/exceed the limit of 4 MiB/),
      });
      expect(await bash(executor, "rm large; echo clean")).toMatchObject({ exitCode: 0, output: "clean\n" });
    });

    it("does not see the agent, forwardings or variables that the user's configuration would pass on", async () => {
      await using open = await SshServer.start("AcceptEnv *");
      const configFile = await open.configWith(
        "Host *",
        "  ForwardAgent yes",
        "  SendEnv LC_SECRET",
        "  SetEnv MINE=x",
        "  RemoteCommand false",
      );
      process.env["LC_SECRET"] = "secret";
      onTestFinished(() => void Reflect.deleteProperty(process.env, "LC_SECRET"));
      const executor = create({ configFile });
      const result = await bash(executor, 'echo "${SSH_AUTH_SOCK-none} ${LC_SECRET-none} ${MINE-none}"');
      expect(result).toMatchObject({ exitCode: 0, output: "none none none\n" });
      await executor.stop();
    });

    it.each(["StdinNull yes", "SessionType none", "ForkAfterAuthentication yes"])(
      "runs although the user's configuration says %s",
      async (line) => {
        const lines = [`IgnoreUnknown ${line.split(" ", 1).join("")}`, "Host *", `  ${line}`];
        const configFile = (await server?.configWith(...lines)) ?? "";
        const executor = create({ configFile });
        expect(await bash(executor, "cat; echo ran")).toMatchObject({ exitCode: 0, output: "ran\n" });
        await executor.stop();
      },
    );

    it("gets variables that no command line reveals", async () => {
      const executor = create({ env: { TOKEN: "s3cret 'quoted' \\ \n value" } });
      const code = `printf %s "$TOKEN" | od -c | head -1 >&2; cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' ' ' | grep -c "s3cre[t]"`;
      const result = await bash(executor, code);
      expect(result.stdout).toBe("0\n");
      expect(result.stderr).toContain("s   3   c   r   e   t");
      const echoed = await bash(executor, 'printf %s "$TOKEN"');
      expect(echoed.stdout).toBe("s3cret 'quoted' \\ \n value");
    });

    it("runs alongside more others than the server allows on one connection", async () => {
      await using strict = await SshServer.start("MaxSessions 1");
      const executor = create({ configFile: strict.configFile });
      const results = await Promise.all(
        Array.from({ length: 15 }, (_, index) => bash(executor, `sleep 1; echo ${index}; echo error >&2`)),
      );
      expect(results.map(({ output, exitCode }) => [output.replace("error\n", ""), exitCode])).toEqual(
        results.map((_, index) => [`${index}\n`, 0]),
      );
      await executor.stop();
    });
  });

  describe("the work directory", () => {
    it("may have any name, and keeps only what blocks created", async () => {
      const workDir = path.join(await temporaryDirectory(), "a 'quoted' $name\\n");
      const executor = create({ workDir });
      expect(await bash(executor, "pwd")).toMatchObject({ output: `${workDir}\n` });
      await bash(executor, "# filename: sub/kept.sh\necho kept > made.txt");
      await executor.stop();
      expect((await readdir(workDir, { recursive: true })).toSorted()).toEqual(["made.txt", "sub", "sub/kept.sh"]);
    });

    it("causes an error if it cannot be created", async () => {
      const directory = await temporaryDirectory();
      await writeFile(path.join(directory, "file"), "");
      const error = await failure({ workDir: path.join(directory, "file/below") });
      expect(error.message).toMatch(/cannot run code: the work directory cannot be used: .*Not a directory/);
      await gone();
    });
  });

  describe("a connection that breaks", () => {
    it("fails the running block with the reason, and the next call connects again", async () => {
      const workDir = await temporaryDirectory();
      const executor = create({ workDir });
      const running = bash(executor, "touch started; sleep 300");
      const broken = failureOf(running);
      await expect.poll(() => readdir(workDir)).toContain("started");
      for (const pid of (await server?.connections()) ?? []) process.kill(pid, "SIGKILL");
      expect(await broken).toMatch(/The connection to fenced-test broke.*call again/s);
      expect(await bash(executor, "ls")).toMatchObject({ exitCode: 0, output: "started\n" });
      await executor.stop();
      await gone();
    });

    it("is reported to blocks and file calls for as long as the host is away", async () => {
      const other = await SshServer.start();
      const executor = create({ configFile: other.configFile });
      await bash(executor, "true");
      const connections = await other.connections();
      // Its configuration stays until the end of the test.
      await other.stopListening();
      for (const pid of connections) process.kill(pid, "SIGKILL");
      for (let calls = 0; calls < 2; calls += 1) {
        expect(await failureOf(bash(executor, "true"))).toMatch(/BackendUnavailableError.*(?:refused|broke)/s);
        expect(await failureOf(executor.files.list())).toMatch(/BackendUnavailableError.*refused/s);
      }
      await other[Symbol.asyncDispose]();
    });

    it("is noticed even if it only falls silent, and everything on the host ends", async () => {
      const workDir = await temporaryDirectory();
      const executor = create({ workDir, options: { ServerAliveInterval: "2", ServerAliveCountMax: "3" } });
      const running = bash(executor, "touch started; sleep 300");
      const broken = failureOf(running);
      await expect.poll(() => readdir(workDir)).toContain("started");
      const connections = (await server?.connections()) ?? [];
      for (const pid of connections) process.kill(pid, "SIGSTOP");
      expect(await broken).toMatch(/connection to fenced-test broke.*(?:not responding|Timeout)/s);
      for (const pid of connections) process.kill(pid, "SIGKILL");
      await executor.files.write("again.txt", "files connect again, too");
      expect(await bash(executor, "cat again.txt")).toMatchObject({ exitCode: 0, output: "files connect again, too" });
      await executor.stop();
      await gone();
    });
  });

  it("starts on a host whose node hangs", async () => {
    const directory = await temporaryDirectory();
    await writeFile(path.join(directory, "node"), "#!/bin/sh\nexec sleep 300\n", { mode: 0o755 });
    const executor = create({ env: { PATH: `${directory}:${process.env["PATH"]}` } });
    expect(await bash(executor, "echo started")).toMatchObject({ exitCode: 0, output: "started\n" });
  });

  it("keeps a user's own directory node_modules/functions", async () => {
    const workDir = await temporaryDirectory();
    await mkdir(path.join(workDir, "node_modules/functions"), { recursive: true });
    await chmod(path.join(workDir, "node_modules"), 0o755);
    const executor = create({ workDir });
    await bash(executor, "true");
    await executor.stop();
    expect(await readdir(path.join(workDir, "node_modules"))).toEqual(["functions"]);
  });

  it("is the same after being dumped and loaded", async () => {
    const executor = create({ workDir: "~/x", languages: { ruby: { extension: "rb", command: ["ruby"] } } });
    const model = executor.dumpComponent();
    const importModule = async () => ({ SshCommandLineCodeExecutor });
    const loaded = await loadComponent<SshCommandLineCodeExecutor>(model, { importModule });
    expect(loaded.dumpComponent()).toEqual(model);
  });

  it("leaves this machine's own ~/.ssh/known_hosts as it is", async () => {
    const known = async () => (await run("sh", ["-c", "cat ~/.ssh/known_hosts 2>/dev/null || echo none"])).stdout;
    const before = await known();
    await bash(create(), "true");
    expect(await known()).toBe(before);
  });
});

/** The command lines of the programs that run on the other side. */
async function programs(): Promise<string[]> {
  const found = server ? await server.remains() : [];
  const pids = found.flatMap((each) => (each.startsWith("process ") ? [each.slice("process ".length)] : []));
  const lines = pids.map((pid) => readFile(`/proc/${pid}/cmdline`, "utf8").catch(() => ""));
  return (await Promise.all(lines)).map((line) => line.replaceAll("\0", " ").trim());
}
