import { execFileSync } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { needs } from "@fenced/test-support";
import { describe, expect, it } from "vitest";
import { Client, current, type Reply } from "./client.ts";
import { exchange } from "./raw-request.ts";

describe("requests", needs("python3"), () => {
  it.for<[string, string]>([
    ["no token", ""],
    ["an invalid token", "Bearer nonsense"],
    ["another scheme", "Basic abc"],
  ])("with %s get 401, a challenge and no body", async ([, authorization]) => {
    await using client = await Client.open();
    const reply = await client.call("GET", "metadata", { headers: { authorization } });
    expect(reply).toMatchObject({ status: 401, text: "" });
    expect(reply.headers.get("www-authenticate")).toMatch(/^Bearer error="invalid_token"/);
  });

  it("with a token that is expired or for another audience get 401 with the reason", async () => {
    await using client = await Client.open();
    const wrong = client.emulator.token({ audience: "https://management.azure.com" });
    const old = client.emulator.token({ expiresInMs: -1000 });
    for (const [token, reason] of [
      [wrong, /audience/],
      [old, /expired/],
    ] as const) {
      const reply = await client.call("GET", "metadata", { headers: { authorization: `Bearer ${token}` } });
      expect(reply.status).toBe(401);
      expect(reply.headers.get("www-authenticate")).toMatch(reason);
    }
  });

  it("may carry a configured token", async () => {
    await using client = await Client.open({ token: "fixed" });
    expect((await client.call("GET", "metadata", { headers: { authorization: "Bearer fixed" } })).status).toBe(200);
  });

  it("to a URL without the pool's path get 401 and no body", async () => {
    await using client = await Client.open();
    const response = await fetch(
      new URL(`/executions?api-version=${current}&identifier=abcd`, client.emulator.endpoint),
    );
    expect(response.status).toBe(401);
    expect(await response.text()).toBe("");
  });

  it.for(["//", "http://[/"])("to the invalid URL %s get 400", async (target) => {
    await using client = await Client.open();
    const answer = await exchange(
      client.emulator,
      `GET ${target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n`,
    );
    expect(answer).toMatch(/^HTTP\/1\.1 400 .*"code":"InvalidAddress"/s);
    expect((await client.call("GET", "metadata")).status).toBe(200);
  });

  it("need an api-version and an identifier of 4 to 128 characters", async () => {
    await using client = await Client.open();
    expect((await client.call("GET", "files", { version: "" })).status).toBe(400);
    expect((await client.call("GET", "files", { version: "2019-01-01" })).json.error.code).toBe(
      "UnsupportedApiVersion",
    );
    for (const identifier of ["", "abc", "a".repeat(129)]) {
      expect((await client.call("GET", "files", { identifier })).json.error.code).toBe("InvalidIdentifier");
    }
    for (const identifier of ["abcd", "a".repeat(128)]) {
      expect((await client.call("GET", "files", { identifier })).status).toBe(200);
    }
  });
});

describe("sessions", needs("python3"), () => {
  it("can be described, and deleted while processes run in them", async () => {
    await using client = await Client.open();
    await client.execute(
      "import subprocess; subprocess.Popen(['sleep', '1000'], start_new_session=True, env={}) and None",
    );
    const { json } = await client.call("GET", "session");
    expect(json).toMatchObject({ identifier: "session-1", etag: expect.any(String) });
    expect(Date.parse(json.expireAt)).toBeGreaterThan(Date.parse(json.lastAccessedAt));
    expect(await client.call("DELETE", "session")).toMatchObject({ status: 204, text: "" });
    expect(client.emulator.sessions()).toEqual([]);
    expect((await client.call("GET", "session")).json.error.code).toBe("SessionWithIdentifierNotFound");
  });

  it("are refused with 429 when the pool is full, until one is deleted", async () => {
    await using client = await Client.open({ maxSessions: 2 });
    for (const identifier of ["first", "second"]) {
      expect((await client.execute("1", {}, { identifier })).status).toBe(200);
    }
    const third = await client.execute("1", {}, { identifier: "third" });
    expect(third.status).toBe(429);
    expect(third.headers.get("retry-after")).toBe("1");
    expect((await client.execute("1", {}, { identifier: "first" })).status).toBe(200);
    await client.call("DELETE", "session", { identifier: "second" });
    expect((await client.execute("1", {}, { identifier: "third" })).status).toBe(200);
  });

  it("expire after the cooldown, but not while code runs", async () => {
    await using client = await Client.open({ cooldownMs: 1000 });
    // A running execution keeps its session, however long the cooldown.
    expect((await client.execute("import time; time.sleep(1.5); 1")).json.result.executionResult).toBe(1);
    while (client.emulator.sessions().length > 0) await sleep(50);
    expect((await client.execute("1")).json.error.code).toBe("SessionWithIdentifierNotFound");
  });

  it("answer waiting executions when they are deleted", async () => {
    await using client = await Client.open();
    const waiting = await executeInLine(client);
    expect((await client.call("DELETE", "session")).status).toBe(204);
    expect((await waiting.reply).json).toMatchObject({ status: "Failed", error: { code: "SessionEnded" } });
  });

  it("answer with SessionEnded after their process has died", async () => {
    // Without namespaces, because code cannot kill the first process of its own namespace.
    await using client = await Client.open({ namespaces: false });
    const ended = { status: "Failed", error: { code: "SessionEnded" } };
    expect((await client.execute("import os; os.kill(os.getppid(), 9)")).json).toMatchObject(ended);
    expect((await client.execute("1")).json).toMatchObject(ended);
  });

  it("outlive the cooldown of an earlier session with the same identifier", async () => {
    await using client = await Client.open({ cooldownMs: 1000 });
    const waiting = await executeInLine(client);
    await client.call("DELETE", "session");
    await waiting.reply;
    expect((await client.execute("import time; time.sleep(2); 1")).json.result.executionResult).toBe(1);
  });

  it("have metadata", async () => {
    await using client = await Client.open({ packages: ["numpy"] });
    expect((await client.call("GET", "metadata")).json).toMatchObject({
      runtimes: [{ name: "PythonLTS", version: expect.any(String) }],
      preInstalledPackages: [{ name: "numpy" }],
      jupyterKernel: "python3",
    });
    await using other = await Client.open();
    expect(Array.isArray((await other.call("GET", "metadata")).json.preInstalledPackages)).toBe(true);
  });

  it("run a Python whose environment is below /tmp, which sessions have for themselves", async () => {
    const home = await mkdtemp("/tmp/fenced-emulator-python-");
    try {
      execFileSync("python3", ["-m", "venv", "--without-pip", home]);
      await using client = await Client.open({ python: path.join(home, "bin", "python") });
      const { json } = await client.execute("import os, sys; print(sys.prefix, os.listdir('/tmp'))");
      const inside = client.emulator.fence === "none" ? path.basename(home) : `['${path.basename(home)}']\n`;
      expect(json.result.stdout).toMatch(`${home} `);
      expect(json.result.stdout).toContain(inside);
    } finally {
      await rm(home, { recursive: true });
    }
  });

  it("cannot run a Python that needs other files of /tmp, which the start says", async () => {
    const [home, settings] = [await mkdtemp("/tmp/fenced-emulator-shim-"), await mkdtemp("/tmp/fenced-emulator-shim-")];
    try {
      await writeFile(path.join(settings, "python.sh"), "export PYTHONHASHSEED=0\n");
      const python = path.join(home, "python");
      await writeFile(python, `#!/bin/sh\n. ${settings}/python.sh\nexec python3 "$@"\n`, { mode: 0o755 });
      await using open = await Client.open({ python, namespaces: false });
      expect(open.emulator.fence).toBe("none");
      await using plain = await Client.open();
      if (plain.emulator.fence === "none") return;
      await expect(Client.open({ python })).rejects.toThrow(
        new RegExp(`Sessions cannot run ${python}.*${settings}/python\\.sh.*set \`namespaces\` to false`),
      );
    } finally {
      for (const directory of [home, settings]) await rm(directory, { recursive: true });
    }
  });

  it("work without namespaces, with /mnt/data replaced in the code", async () => {
    await using client = await Client.open({ namespaces: false });
    expect(client.emulator.fence).toBe("none");
    await client.execute("open('/mnt/data/a.txt', 'w').write('a') and None");
    expect((await client.call("GET", "files/a.txt/content")).text).toBe("a");
    await client.execute(
      "import subprocess; child = subprocess.Popen(['sleep', '1000'], start_new_session=True, env={})",
    );
    const { json } = await client.execute("child.pid");
    await client.call("DELETE", "session");
    expect(() => process.kill(Number(json.result.executionResult), 0)).toThrow("ESRCH");
  });
});

/** Runs endless code and queues other code behind it; resolves once that code has arrived. */
async function executeInLine(client: Client): Promise<{ readonly reply: Promise<Reply> }> {
  await client.execute("import time; time.sleep(1000)", { executionType: "Asynchronous", timeoutInSeconds: 2000 });
  const reply = client.execute("1", {}, { headers: { "operation-id": "waiting" } });
  while ((await client.call("GET", "executions/waiting")).status !== 200) await sleep(20);
  return { reply };
}
