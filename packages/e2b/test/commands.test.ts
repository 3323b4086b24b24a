import { needs } from "@fenced/test-support";
import { CommandExitError, Sandbox, TimeoutError } from "e2b";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startServer, type TestServer } from "./support/start-server.ts";

describe("commands", needs("python3", "bash"), () => {
  let server: TestServer;
  let sandbox: Sandbox;
  beforeAll(async () => {
    server = await startServer();
    sandbox = await Sandbox.create("base", { ...server.client, envs: { GIVEN: "to all" } });
  });
  afterAll(() => server[Symbol.asyncDispose]());

  it("have their output, exit code, variables and directory", async () => {
    await sandbox.files.makeDir("below");
    const said: string[] = [];
    const result = await sandbox.commands.run('echo "$GIVEN $OWN ü"; echo problem >&2; basename "$PWD"', {
      envs: { OWN: "to one" },
      cwd: "below",
      onStdout: (text) => void said.push(text),
    });
    expect(result).toMatchObject({ exitCode: 0, stdout: "to all to one ü\nbelow\n", stderr: "problem\n" });
    expect(said.join("")).toBe(result.stdout);
    await expect(sandbox.commands.run("exit 3")).rejects.toMatchObject({ exitCode: 3 });
    await expect(sandbox.commands.run("true", { cwd: "missing" })).rejects.toThrow(/cwd 'missing' does not exist/);
    expect((await sandbox.commands.run('test "$HOME" -ef .')).exitCode).toBe(0);
  });

  it("are listed, get input, and are ended by signals with what they started", async () => {
    const command = await sandbox.commands.run("cat; sleep 613 & wait", { background: true, stdin: true });
    const listed = (await sandbox.commands.list()).find(({ pid }) => pid === command.pid);
    expect(listed).toMatchObject({ cmd: "/bin/bash", args: ["-l", "-c", "cat; sleep 613 & wait"] });
    await command.sendStdin("one\n");
    await expect.poll(() => command.stdout).toBe("one\n");
    await sandbox.commands.closeStdin(command.pid);
    expect(await command.kill()).toBe(true);
    const error = await command.wait().catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(CommandExitError);
    expect(error).toMatchObject({ exitCode: -1, stdout: "one\n", error: "signal: killed" });
    expect(await sandbox.commands.kill(command.pid)).toBe(false);
    await expect(sandbox.commands.connect(999_999)).rejects.toThrow(/process with pid 999999 not found/);
    const { stdout } = await sandbox.commands.run("ps -eo args | grep -c '^sleep 613' || true");
    expect(stdout).toBe("0\n");
  });

  it("are killed when their time is up, and go on without their client", async () => {
    await expect(sandbox.commands.run("sleep 600", { timeoutMs: 300 })).rejects.toBeInstanceOf(TimeoutError);
    let early = "";
    const command = await sandbox.commands.run("echo early; read line; echo late", {
      background: true,
      stdin: true,
      onStdout: (text) => void (early += text),
    });
    await expect.poll(() => early).toBe("early\n");
    await command.disconnect();
    const again = await sandbox.commands.connect(command.pid);
    await again.sendStdin("\n");
    expect(await again.wait()).toMatchObject({ exitCode: 0, stdout: "late\n" });
    // The end is still known for half a minute.
    expect(await (await sandbox.commands.connect(command.pid)).wait()).toMatchObject({ exitCode: 0, stdout: "" });
  });

  it("carry large output whole and in order, to a client that reads slowly", async () => {
    const { stdout } = await sandbox.commands.run("seq 1 400000");
    expect(stdout).toBe(Array.from({ length: 400_000 }, (_, index) => `${index + 1}\n`).join(""));
  });

  it("run at the same time without a warning of a leak", async () => {
    const warnings: string[] = [];
    const listen = ({ name }: Error): void => void warnings.push(name);
    process.on("warning", listen);
    const commands = await Promise.all(
      Array.from({ length: 20 }, () => sandbox.commands.run("read line", { background: true, stdin: true })),
    );
    await Promise.all(commands.map(({ pid }) => sandbox.commands.sendStdin(pid, "\n")));
    await Promise.all(commands.map((command) => command.wait()));
    process.off("warning", listen);
    expect(warnings).not.toContain("MaxListenersExceededWarning");
  });

  it("run in terminals, which can be resized", async () => {
    let text = "";
    const terminal = await sandbox.pty.create({
      cols: 81,
      rows: 25,
      timeoutMs: 0,
      onData: (bytes) => void (text += Buffer.from(bytes).toString()),
    });
    await sandbox.pty.sendInput(terminal.pid, Buffer.from("stty size; tty\n"));
    await expect.poll(() => text).toMatch(/25 81\r\n\/dev\/pts/);
    await sandbox.pty.resize(terminal.pid, { cols: 132, rows: 50 });
    await sandbox.pty.sendInput(terminal.pid, Buffer.from("stty size; exit 7\n"));
    await expect(terminal.wait()).rejects.toMatchObject({ exitCode: 7 });
    expect(text).toMatch(/50 132/);
    const other = await sandbox.pty.create({ cols: 80, rows: 24, onData: () => {} });
    let seen = "";
    const again = await sandbox.pty.connect(other.pid, {
      onData: (bytes) => void (seen += Buffer.from(bytes).toString()),
    });
    await sandbox.pty.sendInput(other.pid, Buffer.from("echo $((40 + 2))\n"));
    await expect.poll(() => seen).toMatch(/^42\r$/m);
    await again.disconnect();
    expect((await sandbox.commands.list()).map(({ pid }) => pid)).toEqual([other.pid]);
    expect(await sandbox.pty.kill(other.pid)).toBe(true);
  });
});
