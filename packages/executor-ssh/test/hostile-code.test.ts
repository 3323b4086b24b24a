import { randomInt } from "node:crypto";
import { mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import path from "node:path";
import { listProcesses } from "@fenced/executor-kit";
import { needs } from "@fenced/test-support";
import { SshServer } from "@fenced/test-support/ssh-server";
import { describe, expect, it, onTestFinished } from "vitest";
import { commandsWith } from "./support/processes.ts";
import { bash, create, gone, server } from "./support/server.ts";
import { temporaryDirectory } from "./support/temporary-directory.ts";

/** Finds the programs above a block. */
const findOthers = `parent() { sed 's/.*) . //; s/ .*//' "/proc/$1/stat"; }
supervisor=$(parent $PPID); keeper=$(parent $supervisor)`;

describe("hostile code", needs("ssh", "bash", "python3"), () => {
  it("cannot block the clean-up with a named pipe in place of the functions' marker", async () => {
    // Only in a user's own work directory does it matter whose functions these are.
    const executor = create({ workDir: await temporaryDirectory() });
    const code = "mkdir -p node_modules/functions; mkfifo node_modules/functions/.fenced-functions";
    expect(await bash(executor, code)).toMatchObject({ exitCode: 0 });
    await executor.stop();
    await gone();
  });

  it("cannot escape the time limit or stop() with named pipes in place of the session's files", async () => {
    const seconds = randomInt(1_000_000, 9_000_000);
    const executor = create();
    const code = `d=$(dirname "$PWD")
      for name in "$d"/* "$0"; do [ "$name" = "$PWD" ] || { rm -rf "$name"; mkfifo "$name"; }; done
      sleep ${seconds}`;
    expect(await bash(executor, code, { timeoutMs: 3000 })).toMatchObject({ exitCode: 124, timedOut: true });
    await expect.poll(() => commandsWith(`sleep ${seconds}`)).toEqual([]);
    await executor.stop();
    await gone();
  });

  it("cannot outlive a broken connection with such pipes, or without variables and parents", async () => {
    const seconds = randomInt(1_000_000, 9_000_000);
    const executor = create();
    const code = `d=$(dirname "$PWD"); rm -rf "$d"/[a-v]*; mkfifo "$d/home" "$d/functions"; mkdir locked; chmod 0 locked
      (env -i setsid sleep ${seconds} &) >/dev/null 2>&1; echo ready`;
    expect(await bash(executor, code)).toMatchObject({ output: "ready\n" });
    for (const pid of (await server?.connections()) ?? []) process.kill(pid, "SIGKILL");
    await expect.poll(() => commandsWith(`sleep ${seconds}`), { timeout: 60_000 }).toEqual([]);
    await gone();
  });

  it("cannot escape the time limit as a process whose first thread has ended", async () => {
    const executor = create();
    const code = `
import ctypes, os, threading, time
threading.Thread(target=time.sleep, args=(1000,)).start()
print(os.getpid(), flush=True)
ctypes.CDLL(None).syscall({"x86_64": 60, "aarch64": 93}[os.uname().machine], 0)
`;
    const blocks = [{ language: "python", code }];
    const { stdout, timedOut } = await executor.executeCodeBlocks(blocks, { timeoutMs: 12_000 });
    expect([stdout, timedOut]).toEqual([expect.stringMatching(/^\d+\n$/), true]);
    expect((await listProcesses()).filter(({ pid }) => pid === Number(stdout))).toEqual([]);
  });

  it.each([
    ["kills the supervisor", 'kill -KILL "$supervisor"; sleep 300', /BackendUnavailableError: The supervisor/, 1],
    ["kills the program that watches it", 'kill -KILL "$keeper"; sleep 300', /BackendUnavailableError: The conn/, 1],
    ["stops that program", 'kill -STOP "$keeper"', /^exit 0$/, 0],
  ])("that %s leaves nothing behind", async (_, attack, outcome, losses) => {
    const seconds = randomInt(1_000_000, 9_000_000);
    const lost: string[] = [];
    const workDir = await temporaryDirectory();
    const executor = create({ workDir, onSessionLost: (reason) => lost.push(reason) });
    const code = `${findOthers}
touch kept; (env -i setsid sleep ${seconds} &) >/dev/null 2>&1; ${attack}`;
    const ended = bash(executor, code).then(({ exitCode }) => `exit ${exitCode}`, String);
    expect(await ended).toMatch(outcome);
    expect(lost).toHaveLength(losses);
    expect(await bash(executor, "ls")).toMatchObject({ output: "kept\n" });
    await executor.stop();
    expect(await commandsWith(`sleep ${seconds}`)).toEqual([]);
    for (const pid of await stoppedPrograms()) process.kill(pid, "SIGCONT");
    await gone();
    expect(await readdir(workDir)).toEqual(["kept"]);
  });

  it("that stops the supervisor and the program that watches it makes no call hang", { timeout: 120_000 }, async () => {
    const executor = create();
    const code = `${findOthers}
kill -STOP "$keeper" "$supervisor"; sleep 1000`;
    expect(await bash(executor, code, { timeoutMs: 1000 })).toMatchObject({ exitCode: 124, timedOut: true });
    await executor.stop();
    for (const pid of await stoppedPrograms()) process.kill(pid, "SIGCONT");
    await gone();
  });

  it("that ends all programs of a name ends neither the session nor what watches over it", async () => {
    const executor = create();
    const code = `for each in /proc/[0-9]*; do
      grep -qzF "TMPDIR=$TMPDIR" $each/environ && { grep -q python $each/comm || grep -qa python $each/cmdline; } && echo $each
    done 2>/dev/null; echo looked`;
    expect((await bash(executor, code)).output).toBe("looked\n");
  });

  describe("through what the host reads", () => {
    it("cannot make the host read endless output in place of its programs'", async () => {
      // Code can write the login shell's start-up file, and thereby decides what runs at the next connection.
      await mkdir(`${server?.directory}/home`, { recursive: true });
      onTestFinished(() => writeFile(`${server?.directory}/home/.bashrc`, ""));
      const evil = await temporaryDirectory();
      const executor = create();
      const code = `printf '#!/bin/sh\\nexec yes place\\n' >${evil}/python3; chmod +x ${evil}/python3
        echo "PATH=${evil}:$PATH" >"$HOME/.bashrc"`;
      expect((await bash(executor, code)).exitCode).toBe(0);
      await executor.stop();
      await expect(executor.start()).rejects.toThrow(/cannot run code/);
      await gone();
    });

    it("cannot redirect file calls by swapping the workspace for a link", async () => {
      const directory = await temporaryDirectory();
      const outside = path.join(directory, "outside");
      await mkdir(outside);
      await writeFile(path.join(outside, "secret.txt"), "secret");
      const workDir = path.join(directory, "work");
      const executor = create({ workDir });
      await bash(executor, `cd ..; mv work elsewhere; ln -s '${outside}' work`);
      for (const call of [
        () => executor.files.read("secret.txt"),
        () => executor.files.list(),
        () => executor.files.write("secret.txt", "mine"),
        () => executor.files.remove("secret.txt"),
      ]) {
        await expect(call()).rejects.toThrow(/no longer exists/);
      }
      expect(await readdir(outside)).toEqual(["secret.txt"]);
      expect(await readFile(path.join(outside, "secret.txt"), "utf8")).toBe("secret");
      await executor.stop();
    });

    it("cannot control the terminal that shows a host's message in an error", async () => {
      const said = "\\033]52;c;ZXZpbA==\\007Wel\\342\\200\\256come\\033[2J";
      await using evil = await SshServer.start(`ForceCommand printf '${said}' >&2; exit 1`);
      const failed = await create({ configFile: evil.configFile })
        .start()
        .then(
          () => "it started",
          (error: unknown) => (error instanceof Error ? error.message : ""),
        );
      expect(failed).toMatch(/Welcome/);
      // oxlint-disable-next-line no-control-regex
      expect(failed).not.toMatch(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202a-\u202e]/);
    });
  });
});

async function stoppedPrograms(): Promise<number[]> {
  const found = server ? await server.remains() : [];
  return found.flatMap((each) => (each.startsWith("process ") ? [Number(each.slice("process ".length))] : []));
}
