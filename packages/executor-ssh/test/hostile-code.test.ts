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

describe("hostile code", needs("ssh", "bash", "python3"), () => {
  it("cannot block the clean-up with a named pipe in place of the functions' marker", async () => {
    const executor = create();
    const code = "mkdir -p node_modules/functions; mkfifo node_modules/functions/.fenced-functions";
    expect(await bash(executor, code)).toMatchObject({ exitCode: 0 });
    await executor.stop();
    await gone();
  });

  it("cannot escape the time limit or stop() with named pipes in place of the session's files", async () => {
    const seconds = randomInt(1_000_000, 9_000_000);
    const executor = create();
    const code = `d=$(dirname "$PWD")
      for name in "$d"/*; do [ "$name" = "$PWD" ] || { rm -rf "$name"; mkfifo "$name"; }; done
      mkdir -p "$d/killed" "$d/blocks" 2>/dev/null
      for n in 1 2 3; do for name in "$d/killed/$n" "$d/blocks/$n"; do rm -f "$name"; mkfifo "$name"; done; done 2>/dev/null
      sleep ${seconds}`;
    expect(await bash(executor, code, { timeoutMs: 3000 })).toMatchObject({ exitCode: 124, timedOut: true });
    await expect.poll(() => commandsWith(`sleep ${seconds}`)).toEqual([]);
    await executor.stop();
    await gone();
  });

  it("cannot outlive a broken connection with such pipes", async () => {
    const seconds = randomInt(1_000_000, 9_000_000);
    const executor = create();
    const code = `d=$(dirname "$PWD"); mkfifo "$d/killed/1"; rm -rf "$d/beat" "$d/blocks/1"; mkfifo "$d/beat" "$d/blocks/1"
      (env -i sleep ${seconds} &) >/dev/null 2>&1; echo ready`;
    expect(await bash(executor, code)).toMatchObject({ output: expect.stringContaining("ready\n") });
    for (const pid of (await server?.connections()) ?? []) process.kill(pid, "SIGKILL");
    await expect.poll(() => commandsWith(`sleep ${seconds}`), { timeout: 15_000 }).toEqual([]);
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
    const { stdout, timedOut } = await executor.executeCodeBlocks(blocks, { timeoutMs: 5000 });
    expect([stdout, timedOut]).toEqual([expect.stringMatching(/^\d+\n$/), true]);
    expect((await listProcesses()).filter(({ pid }) => pid === Number(stdout))).toEqual([]);
  });

  it("that stops the supervisor makes no call hang", { timeout: 120_000 }, async () => {
    const executor = create();
    const stopAll = `for p in /proc/[0-9]*; do
        { tr '\\0' ' ' <$p/cmdline && tr '\\0' ' ' <$p/environ; } 2>/dev/null |
          grep -a '[f]enced-supervisor' | grep -aqF "TMPDIR=$TMPDIR " && kill -STOP "\${p#/proc/}" && echo stopped; done; true`;
    expect((await bash(executor, stopAll)).output).toContain("stopped");
    expect(await bash(executor, "sleep 1000", { timeoutMs: 1000 })).toMatchObject({ exitCode: 124, timedOut: true });
    await executor.stop();
    for (const pid of await stoppedSupervisors()) process.kill(pid, "SIGCONT");
    await gone();
  });

  describe("through what the host reads", () => {
    it("cannot fill the host's memory with a sparse file", { timeout: 120_000 }, async () => {
      const executor = create();
      await bash(executor, "truncate -s 100G big");
      await expect(executor.files.read("big")).rejects.toThrow(/larger than \d+ bytes/);
    });

    it("cannot make the host read an endless listing", { timeout: 120_000 }, async () => {
      // Code can write the login shell's start-up file, and thereby decides what runs at each call.
      await mkdir(`${server?.directory}/home`, { recursive: true });
      onTestFinished(() => writeFile(`${server?.directory}/home/.bashrc`, ""));
      const executor = create();
      const evil = `mkdir -p evil; printf '#!/bin/sh\\nwhile :; do printf "0 a\\\\0%%.0s" $(seq 1000); done\\n' >evil/find; chmod +x evil/find
        echo "PATH=$PWD/evil:$PATH" >"$HOME/.bashrc"; evil/find | head -c 8 | od -c | head -1`;
      expect((await bash(executor, evil)).output).toContain("0       a  \\0");
      await expect(executor.files.list()).rejects.toThrow(/too many files|no list/i);
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

async function stoppedSupervisors(): Promise<number[]> {
  const found = server ? await server.remains() : [];
  return found.flatMap((each) => (each.startsWith("process ") ? [Number(each.slice("process ".length))] : []));
}
