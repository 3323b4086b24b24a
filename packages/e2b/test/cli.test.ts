import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { text } from "node:stream/consumers";
import { needs } from "@fenced/test-support";
import { playHost } from "@fenced/test-support/loopback-hosts";
import { Sandbox } from "e2b";
import { describe, expect, it } from "vitest";
import { parseOptions, UsageError } from "../src/cli/parse-options.ts";
import { CliTemplates } from "../src/cli/templates.ts";
import { startCommand } from "./support/start-command.ts";
import { apiKey } from "./support/start-server.ts";

describe("fenced-e2b", () => {
  it.each([
    [["--template", "base"], "It must be a name and an image"],
    [["--template", "a=b", "--template", "a=c"], "a is given twice"],
    [["--port", "-1"], "--port"],
    [["--network", "some"], "Allowed choices are open, none"],
    [["--network", "none", "--allow", "pypi.org"], "cannot be used with"],
    [["--allow", "https://pypi.org"], "must be a host name or an address"],
    [["--ready", "-1"], "at least 0"],
    [["--ready", "1", "--state", "there"], "cannot be combined with --state"],
    [["--nonsense"], "All options: fenced-e2b --help"],
  ])("explains what is wrong with %j", (args, message) => {
    expect(() => parseOptions(args)).toThrow(UsageError);
    expect(() => parseOptions(args)).toThrow(message);
  });

  it("shows one default of each option", async () => {
    const { child } = startCommand(["--help"]);
    const shown = await text(child.stdout);
    expect(shown.replaceAll(/\s+/g, " ")).toContain("repeatable (default: base=python:3-slim) --port");
    expect(shown).not.toContain("default: []");
  });

  it("says that its port is taken, without a stack trace", { timeout: 120_000 }, async () => {
    const taken = createServer().listen(0, "::1");
    await once(taken, "listening");
    const address = taken.address();
    const port = typeof address === "object" && address !== null ? address.port : 0;
    const { child } = startCommand(["--port", String(port), "--host", "::1"]);
    const said = text(child.stderr);
    expect(await once(child, "close")).toEqual([2, null]);
    expect(await said).toBe(
      `The server cannot listen on port ${port} of ::1: another program uses it; choose another --port.\n`,
    );
    taken.close();
  });

  it("says at its start which template cannot be started", { ...needs("docker"), timeout: 120_000 }, async () => {
    const { child } = startCommand(["--template", "base=fenced-test/there-is-no-such-image"]);
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
      const { child, line } = startCommand(["--template", "base=fenced-test:python"], { FENCED_E2B_API_KEY: apiKey });
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
    const first = startCommand(args, { FENCED_E2B_API_KEY: apiKey });
    let second: ReturnType<typeof startCommand> | undefined;
    try {
      const url = await first.line();
      const created = await Sandbox.create("base", { apiKey, apiUrl: url, sandboxUrl: url, timeoutMs: 600_000 });
      await created.commands.run("echo one > one.txt; echo two > /tmp/two.txt");
      first.child.kill("SIGKILL");
      await once(first.child, "close");
      second = startCommand(args, { FENCED_E2B_API_KEY: apiKey });
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
      const options = parseOptions(["--template", "base=os-sandbox", "--ready", "1", "--network", "open"]);
      const errors: unknown[] = [];
      if (!options) throw new Error("there are no options");
      await using made = new CliTemplates(options, (error) => void errors.push(error));
      const { signal } = new AbortController();
      await made.check((message) => void errors.push(message), signal);
      const template = made.templates["base"];
      if (!template) throw new Error("there is no template");
      const request = { template: "base", env: {}, restore: undefined, signal };
      await using ready = await template.create({ ...request, network: template.network });
      await using other = await template.create({ ...request, network: "none" });
      expect([ready.workspacePath, other.workspacePath]).toEqual([expect.any(String), undefined]);
      const { output } = await ready.executeCodeBlocks([{ language: "python", code: "print(1)" }]);
      expect([output, errors]).toEqual(["1\n", []]);
    },
  );

  it(
    "has sandboxes ready whose network obeys the rules of whichever client gets them",
    { ...needs("bubblewrap", "python3"), timeout: 120_000 },
    async () => {
      const port = await playHost();
      const args = ["--template", "base=os-sandbox", "--ready", "1", "--allow", "*", "--allow", "127.0.0.1"];
      const { child, line } = startCommand(args, { FENCED_E2B_API_KEY: apiKey });
      try {
        const url = await line();
        const client = { apiKey, apiUrl: url, sandboxUrl: url };
        const open = await Sandbox.create("base", client);
        const allowed = { allowOut: ["localhost"], denyOut: ["0.0.0.0/0"] };
        const limited = await Sandbox.create("base", { ...client, network: allowed });
        const denied = await Sandbox.create("base", { ...client, allowInternetAccess: false });
        const ask = async (sandbox: Sandbox): Promise<string> => {
          const command = `for host in localhost 127.0.0.1; do no_proxy= NO_PROXY= python3 -c 'import sys, urllib.request, urllib.error
try:
    print(urllib.request.urlopen("http://%s:${port}/" % sys.argv[1]).status)
except urllib.error.HTTPError as error:
    print(error.code)' $host; done`;
          return (await sandbox.commands.run(command)).stdout.replaceAll("\n", " ").trim();
        };
        expect(await Promise.all([open, limited, denied].map(ask))).toEqual(["200 200", "200 403", "403 403"]);
        await open.updateNetwork({ denyOut: ["127.0.0.1"] });
        await denied.updateNetwork({});
        expect(await Promise.all([open, limited, denied].map(ask))).toEqual(["403 403", "200 403", "200 200"]);
      } finally {
        child.kill("SIGTERM");
        await once(child, "close");
      }
    },
  );

  it(
    "runs sandboxes of this machine, with a random key",
    { ...needs("bubblewrap", "python3"), timeout: 120_000 },
    async () => {
      const { child, line } = startCommand(["--template", "base=os-sandbox", "--ready", "2"], {
        FENCED_E2B_API_KEY: "",
      });
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
