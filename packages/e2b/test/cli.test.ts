import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { createInterface } from "node:readline";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { needs } from "@fenced/test-support";
import { Sandbox } from "e2b";
import { describe, expect, it } from "vitest";
import { parseOptions, UsageError } from "../src/cli/parse-options.ts";
import { CliTemplates } from "../src/cli/templates.ts";
import { apiKey } from "./support/start-server.ts";

const program = fileURLToPath(new URL("../src/cli.ts", import.meta.url));

function start(args: readonly string[], env: Readonly<Record<string, string>> = {}) {
  const options = ["--conditions=@fenced/source", "--import", "tsx", program, ...args];
  const child = spawn(process.execPath, options, { env: { ...process.env, ...env } });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const line = async (): Promise<string> => String((await lines.next()).value);
  return { child, line };
}

describe("fenced-e2b", () => {
  it.each([
    [["--template", "base"], "It must be a name and an image"],
    [["--template", "a=b", "--template", "a=c"], "a is given twice"],
    [["--port", "-1"], "--port"],
    [["--network", "some"], "Allowed choices are open, none"],
    [["--ready", "-1"], "at least 0"],
    [["--ready", "1", "--state", "there"], "cannot be combined with --state"],
    [["--nonsense"], "All options: fenced-e2b --help"],
  ])("explains what is wrong with %j", (args, message) => {
    expect(() => parseOptions(args)).toThrow(UsageError);
    expect(() => parseOptions(args)).toThrow(message);
  });

  it("shows one default of each option", async () => {
    const { child } = start(["--help"]);
    const shown = await text(child.stdout);
    expect(shown.replaceAll(/\s+/g, " ")).toContain("repeatable (default: base=python:3-slim) --port");
    expect(shown).not.toContain("default: []");
  });

  it("says that its port is taken, without a stack trace", { timeout: 120_000 }, async () => {
    const taken = createServer().listen(0, "::1");
    await once(taken, "listening");
    const address = taken.address();
    const port = typeof address === "object" && address !== null ? address.port : 0;
    const { child } = start(["--port", String(port), "--host", "::1"]);
    const said = text(child.stderr);
    expect(await once(child, "close")).toEqual([2, null]);
    expect(await said).toBe(
      `The server cannot listen on port ${port} of ::1: another program uses it; choose another --port.\n`,
    );
    taken.close();
  });

  it("says at its start which template cannot be started", { ...needs("docker"), timeout: 120_000 }, async () => {
    const { child } = start(["--template", "base=fenced-test/there-is-no-such-image"]);
    try {
      let said = "";
      for await (const piece of child.stderr) {
        said += String(piece);
        if (said.includes("cannot be started")) break;
      }
      expect(said).toMatch(/Warning: the template base cannot be started: .*there-is-no-such-image/);
    } finally {
      child.kill("SIGTERM");
      await once(child, "close");
    }
  });

  it(
    "serves containers in which /home/user is the home directory",
    { ...needs("docker"), timeout: 120_000 },
    async () => {
      const { child, line } = start(["--template", "base=fenced-test:python"], { FENCED_E2B_API_KEY: apiKey });
      try {
        const url = await line();
        const sandbox = await Sandbox.create("base", { apiKey, apiUrl: url, sandboxUrl: url });
        await sandbox.files.write("/home/user/one.txt", "one");
        const { stdout } = await sandbox.commands.run('cat one.txt; echo " $HOME"; cat /home/user/one.txt');
        expect(stdout).toBe("one /home/user\none");
        expect((await sandbox.files.getInfo("one.txt")).path).toBe("/home/user/one.txt");
        child.kill("SIGTERM");
        expect(await once(child, "close")).toEqual([143, null]);
        await expect(sandbox.commands.run("true")).rejects.toThrow(/./);
      } finally {
        child.kill("SIGKILL");
      }
    },
  );

  it("loses no sandbox when it is killed, with --state", { ...needs("docker"), timeout: 240_000 }, async () => {
    const state = await mkdtemp(path.join(tmpdir(), "fenced-test-"));
    const args = ["--template", "base=fenced-test:python", "--state", state];
    const first = start(args, { FENCED_E2B_API_KEY: apiKey });
    let second: ReturnType<typeof start> | undefined;
    try {
      const url = await first.line();
      const created = await Sandbox.create("base", { apiKey, apiUrl: url, sandboxUrl: url, timeoutMs: 600_000 });
      await created.commands.run("echo one > one.txt; echo two > /tmp/two.txt");
      first.child.kill("SIGKILL");
      await once(first.child, "close");
      second = start(args, { FENCED_E2B_API_KEY: apiKey });
      const next = await second.line();
      const sandbox = await Sandbox.connect(created.sandboxId, { apiKey, apiUrl: next, sandboxUrl: next });
      expect((await sandbox.commands.run("cat one.txt /tmp/two.txt")).stdout).toBe("one\ntwo\n");
      await sandbox.pause();
      await sandbox.connect();
      expect(await sandbox.files.read("one.txt")).toBe("one\n");
      await sandbox.kill();
    } finally {
      for (const { child } of [first, ...(second ? [second] : [])]) {
        if (child.exitCode !== null || child.signalCode !== null) continue;
        child.kill("SIGTERM");
        await once(child, "close");
      }
      await rm(state, { recursive: true, force: true });
    }
  });

  it(
    "has sandboxes ready for clients that ask for nothing special",
    { ...needs("bubblewrap", "python3"), timeout: 120_000 },
    async () => {
      const options = parseOptions(["--template", "base=os-sandbox", "--ready", "1"]);
      const errors: unknown[] = [];
      if (!options) throw new Error("there are no options");
      await using made = new CliTemplates(options, (error) => void errors.push(error));
      const { signal } = new AbortController();
      await made.check((message) => void errors.push(message), signal);
      const create = made.templates["base"];
      if (!create) throw new Error("there is no template");
      const request = { template: "base", env: {}, restore: undefined, signal };
      await using ready = await create({ ...request, allowInternetAccess: true });
      await using other = await create({ ...request, allowInternetAccess: false });
      expect([ready.workspacePath, other.workspacePath]).toEqual([expect.any(String), undefined]);
      const { output } = await ready.executeCodeBlocks([{ language: "python", code: "print(1)" }]);
      expect([output, errors]).toEqual(["1\n", []]);
    },
  );

  it(
    "runs sandboxes of this machine, with a random key",
    { ...needs("bubblewrap", "python3"), timeout: 120_000 },
    async () => {
      const { child, line } = start(["--template", "base=os-sandbox", "--ready", "2"], { FENCED_E2B_API_KEY: "" });
      try {
        const url = await line();
        const key = (await line()).replace("E2B_API_KEY=", "");
        const sandbox = await Sandbox.create("base", { apiKey: key, apiUrl: url, sandboxUrl: url });
        await sandbox.files.write("one.txt", "one");
        expect((await sandbox.commands.run("cat one.txt")).stdout).toBe("one");
        await sandbox.kill();
      } finally {
        child.kill("SIGTERM");
        await once(child, "close");
      }
    },
  );
});
