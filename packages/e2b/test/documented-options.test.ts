import { once } from "node:events";
import { type IncomingMessage, request } from "node:http";
import { type BackendName, needs } from "@fenced/test-support";
import { machine, type MachineKind, machineKinds } from "@fenced/test-support/machines";
import { RateLimitError, Sandbox } from "e2b";
import { describe, expect, it } from "vitest";
import { startCommand } from "./support/start-command.ts";
import { apiKey } from "./support/start-server.ts";

const sources: Readonly<Record<Exclude<MachineKind, "wasm">, string>> = {
  docker: "fenced-test:python",
  "os-sandbox": "os-sandbox",
};
const kinds = Object.entries(sources) as [keyof typeof sources, string][];
const policies = [
  ["open", ["--network", "open"], true],
  ["none", ["--network", "none"], false],
] as const;

/** What code says about the place where it runs, and whether it has a network. */
const where = `import os
with open("/proc/net/dev") as devices: names = {line.split(":")[0].strip() for line in devices if ":" in line}
print(os.path.exists("/.dockerenv"), names > {"lo"})`;

describe.each(kinds)("on a machine whose strongest fence is %s, fenced-e2b", (kind, source) => {
  const backends: readonly BackendName[] = machineKinds[kind];

  it.each(policies)(
    "serves sandboxes with --network %s, under a domain, and no more than it may",
    { ...needs(...backends), timeout: 120_000 },
    async (_, network, isOpen) => {
      const words = ["--template", `base=${source}`, "--port", "0", "--host", "127.0.0.1", "--max-sandboxes", "1"];
      words.push("--domain", "sandboxes.example", ...network);
      const { child, line } = startCommand(words, { ...(await machine(kind)), FENCED_E2B_API_KEY: apiKey });
      const url = await line();
      const client = { apiKey, apiUrl: url, sandboxUrl: url };
      const sandbox = await Sandbox.create("base", client);
      await sandbox.files.write("where.py", where);
      const { stdout } = await sandbox.commands.run("python3 where.py");
      expect(stdout).toBe(
        kind === "docker" ? `True ${isOpen ? "True" : "False"}\n` : `False ${isOpen ? "True" : "False"}\n`,
      );
      await expect(Sandbox.create("base", client)).rejects.toThrow(RateLimitError);
      const answer = await new Promise<IncomingMessage>((resolve) => {
        const host = `49983-${sandbox.sandboxId}.sandboxes.example`;
        request(`${url}/health`, { headers: { host } }, resolve).end();
      });
      expect(answer.resume().statusCode).toBe(204);
      child.kill("SIGTERM");
      expect(await once(child, "close")).toEqual([143, null]);
    },
  );
});

describe("on a machine with Node alone, fenced-e2b", () => {
  it.each([
    ["no options", [], "DOCKER_HOST"],
    ["an image", ["--template", "base=python:3-slim"], "DOCKER_HOST"],
    ["the OS sandbox", ["--template", "base=os-sandbox"], "bubblewrap is not installed"],
  ])("says what a template needs, with %s", { timeout: 120_000 }, async (_, words, missing) => {
    const { said, line } = startCommand(words, { ...(await machine("wasm")), FENCED_E2B_API_KEY: apiKey });
    const url = await line();
    expect(await said("cannot be started")).toContain("Warning: the template base cannot be started: ");
    expect(await said(missing)).toContain(missing);
    const client = { apiKey, apiUrl: url, sandboxUrl: url };
    await expect(Sandbox.create("base", client)).rejects.toThrow(/./);
  });
});
