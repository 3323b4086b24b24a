import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { directoryStore } from "@fenced/checkpoints";
import type { NetworkPolicy } from "@fenced/core";
import { DockerCommandLineCodeExecutor } from "@fenced/executor-docker";
import { LocalCommandLineCodeExecutor } from "@fenced/executor-local";
import { needs } from "@fenced/test-support";
import { playHost, playTcp } from "@fenced/test-support/loopback-hosts";
import { Sandbox } from "e2b";
import { describe, expect, it, onTestFinished } from "vitest";
import type { NetworkTemplate } from "../src/index.ts";
import { apiKey, startServer, type TestServer } from "./support/start-server.ts";

const addresses: Readonly<Record<string, string>> = { "second.example": "127.0.0.2" };
/** All names lead to this machine, where servers play hosts. */
const everyName: NetworkPolicy = {
  allow: ["*", "127.0.0.1", "127.0.0.2"],
  resolve: async (host) => [addresses[host] ?? "127.0.0.1"],
};
const sandboxed = (network: NetworkPolicy, keepAliveMs = 0): NetworkTemplate => ({
  network,
  create: ({ network: given, restore }) =>
    new LocalCommandLineCodeExecutor({
      isolation: "os-sandbox",
      ...(given !== undefined && { network: given }),
      restore,
      keepAliveMs,
    }),
});

/** What comes back from each host, as code in the sandbox sees it: its status. */
async function statuses(sandbox: Sandbox, port: number, ...hosts: readonly string[]): Promise<readonly unknown[]> {
  const code = `import json, os, sys, urllib.request, urllib.error
os.environ["no_proxy"] = os.environ["NO_PROXY"] = ""
for host in sys.argv[2:]:
    try:
        print(urllib.request.urlopen("http://%s:%s/" % (host, sys.argv[1]), timeout=60).status)
    except urllib.error.HTTPError as error:
        print(error.code)
    except OSError:
        print("nothing")
`;
  await sandbox.files.write("ask.py", code);
  const { stdout } = await sandbox.commands.run(`python3 ask.py ${port} ${hosts.join(" ")}`);
  return stdout.trim().split("\n");
}

async function temporaryDirectory(): Promise<string> {
  const directory = await mkdtemp(path.join(tmpdir(), "fenced-test-"));
  onTestFinished(() => rm(directory, { recursive: true, force: true }));
  return directory;
}

/** The answer of the control API to a request that E2B's client may not send. */
async function asked({ url }: TestServer, method: string, at: string, body: unknown): Promise<[number, string]> {
  const headers = { "x-api-key": apiKey };
  const answer = await fetch(url + at, { method, headers, body: JSON.stringify(body) });
  return [answer.status, await answer.text()];
}

const backends = needs("bubblewrap", "python3", "bash");
const slow = { ...backends, timeout: 120_000 };

describe("rules for a sandbox's network", () => {
  it("narrow what the template allows, at its creation and later", slow, async () => {
    const port = await playHost();
    await using server = await startServer({ templates: { base: sandboxed(everyName) } });
    const network = { allowOut: ["*.good.example", "best.example"], denyOut: ["0.0.0.0/0"] };
    const sandbox = await Sandbox.create("base", { ...server.client, network });
    const hosts = ["a.good.example", "best.example", "good.example", "second.example", "127.0.0.1"];
    expect(await statuses(sandbox, port, ...hosts)).toEqual(["200", "200", "403", "403", "403"]);
    expect(await sandbox.getInfo()).toMatchObject({ allowInternetAccess: true, network });

    // The same as at E2B: everything is replaced, and what is left out is gone.
    await sandbox.updateNetwork({ denyOut: ["127.0.0.2/32"] });
    expect(await statuses(sandbox, port, "good.example", "second.example")).toEqual(["200", "403"]);
    const changed = await sandbox.getInfo();
    expect(changed.network).toEqual({ allowPublicTraffic: true, denyOut: ["127.0.0.2/32"] });
    await sandbox.updateNetwork({ allowOut: ["127.0.0.2"], denyOut: ["127.0.0.0/8"] });
    // It is allowed, but nobody listens there.
    expect(await statuses(sandbox, port, "good.example", "second.example")).toEqual(["403", "502"]);
    await sandbox.updateNetwork({ allowInternetAccess: false });
    expect(await statuses(sandbox, port, "good.example")).toEqual(["403"]);
    expect((await sandbox.getInfo()).allowInternetAccess).toBe(false);
    await sandbox.updateNetwork({ allowInternetAccess: false, allowOut: ["best.example"] });
    expect(await statuses(sandbox, port, "good.example", "best.example")).toEqual(["403", "200"]);
    await sandbox.updateNetwork({});
    expect(await statuses(sandbox, port, "good.example", "127.0.0.1")).toEqual(["200", "200"]);
    expect((await sandbox.getInfo()).network).toEqual({ allowPublicTraffic: true });
  });

  it("apply to new connections of a process that runs; those that it has stay", slow, async () => {
    const port = await playHost();
    const echo = await playTcp((socket) => socket.pipe(socket));
    await using server = await startServer({ templates: { base: sandboxed(everyName) } });
    const sandbox = await Sandbox.create("base", server.client);
    const program = `import os, socket, sys
def connect(host, port):
    made = socket.create_connection(("127.0.0.1", int(os.environ["ALL_PROXY"].rsplit(":")[-1])))
    made.sendall(b"CONNECT %s:%d HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n" % (host, port))
    return made, made.recv(1000).split()[1].decode()
held, status = connect(b"good.example", ${echo})
print("held", status, flush=True)
for line in sys.stdin:
    held.sendall(b"hello")
    print(held.recv(5).decode(), connect(b"good.example", ${port})[1], flush=True)
`;
    await sandbox.files.write("run.py", program);
    let said = "";
    const onStdout = (text: string): void => void (said += text);
    const options = { background: true, stdin: true, timeoutMs: 0, onStdout } as const;
    const command = await sandbox.commands.run("exec python3 run.py", options);
    await expect.poll(() => said, { timeout: 60_000 }).toBe("held 200\n");
    await sandbox.updateNetwork({ denyOut: ["0.0.0.0/0"] });
    await sandbox.commands.sendStdin(command.pid, "\n");
    await expect.poll(() => said, { timeout: 60_000 }).toBe("held 200\nhello 403\n");
    await sandbox.updateNetwork({});
    await sandbox.commands.sendStdin(command.pid, "\n");
    await expect.poll(() => said, { timeout: 60_000 }).toBe("held 200\nhello 403\nhello 200\n");
    await command.kill();
  });

  it("never allow what the template does not, and say so", slow, async () => {
    const port = await playHost();
    const limit: NetworkPolicy = {
      ...everyName,
      allow: ["good.example", "*.corp.example", "127.0.0.1"],
      deny: ["127.0.0.2"],
    };
    await using server = await startServer({ templates: { base: sandboxed(limit) } });
    const wider = { allowOut: ["good.example", "evil.example"], denyOut: ["0.0.0.0/0"] };
    const refusal = /"evil\.example" is not in the network policy of the template base, which clients can only narrow/;
    await expect(Sandbox.create("base", { ...server.client, network: wider })).rejects.toThrow(refusal);
    const sandbox = await Sandbox.create("base", { ...server.client, network: { denyOut: ["0.0.0.0/0"] } });
    await expect(sandbox.updateNetwork(wider)).rejects.toThrow(refusal);
    expect(await statuses(sandbox, port, "good.example", "evil.example")).toEqual(["403", "403"]);
    const network = { allowOut: ["*", "0.0.0.0/0"], denyOut: ["0.0.0.0/0"] };
    await sandbox.updateNetwork(network);
    const hosts = ["good.example", "a.corp.example", "evil.example", "127.0.0.1", "second.corp.example"];
    expect(await statuses(sandbox, port, ...hosts)).toEqual(["200", "200", "403", "200", "200"]);
    await sandbox.updateNetwork({ allowOut: ["*.example", "127.0.0.2"], denyOut: ["0.0.0.0/0"] });
    // What the operator denies stays denied.
    expect(await statuses(sandbox, port, "good.example", "127.0.0.2", "127.0.0.1")).toEqual(["200", "403", "403"]);
    expect((await fetch(`${server.url}/v2/sandboxes`, { headers: { "x-api-key": apiKey } })).status).toBe(200);
  });

  it("survive a restart of the server, and can be changed after it", { ...slow, timeout: 240_000 }, async () => {
    const port = await playHost();
    const stateDirectory = path.join(await temporaryDirectory(), "state");
    const start = (limit: NetworkPolicy): Promise<TestServer> =>
      startServer({ stateDirectory, templates: { base: sandboxed(limit, 60_000) } });
    const first = await start(everyName);
    const network = { allowOut: ["good.example"], denyOut: ["0.0.0.0/0"] };
    const created = await Sandbox.create("base", { ...first.client, network, timeoutMs: 600_000 });
    const plain = await Sandbox.create("base", { ...first.client, timeoutMs: 600_000 });
    await created.updateNetwork({ ...network, allowOut: ["best.example"] });
    await first[Symbol.asyncDispose]();

    const second = await start(everyName);
    const sandbox = await Sandbox.connect(created.sandboxId, second.client);
    expect(await statuses(sandbox, port, "good.example", "best.example")).toEqual(["403", "200"]);
    expect((await sandbox.getInfo()).network).toMatchObject({ allowOut: ["best.example"] });
    await sandbox.updateNetwork({ denyOut: ["127.0.0.2"] });
    expect(await statuses(sandbox, port, "good.example", "second.example")).toEqual(["200", "403"]);
    await second[Symbol.asyncDispose]();

    // The operator has changed the policy meanwhile.
    await using third = await start({ ...everyName, allow: ["second.example", "good.example", "127.0.0.1"] });
    const again = await Sandbox.connect(created.sandboxId, third.client);
    const hosts = ["good.example", "best.example", "second.example"];
    expect(await statuses(again, port, ...hosts)).toEqual(["200", "403", "403"]);
    const other = await Sandbox.connect(plain.sandboxId, third.client);
    expect(await statuses(other, port, "good.example", "best.example")).toEqual(["200", "403"]);
    await Promise.all([again, other].map((each) => each.kill()));
  });

  it("stay with a sandbox that is paused, and go to its snapshots and forks", slow, async () => {
    const port = await playHost();
    const checkpoints = directoryStore(await temporaryDirectory());
    await using server = await startServer({ checkpoints, templates: { base: sandboxed(everyName) } });
    const network = { allowOut: ["good.example"], denyOut: ["0.0.0.0/0"] };
    const sandbox = await Sandbox.create("base", { ...server.client, network });
    const { snapshotId } = await sandbox.createSnapshot();
    const copy = await Sandbox.create(snapshotId, server.client);
    const narrower = await Sandbox.create(snapshotId, { ...server.client, network: { denyOut: ["0.0.0.0/0"] } });
    const [fork] = await sandbox.fork();
    if (!(fork instanceof Sandbox)) throw new Error("there is no fork", { cause: fork });
    await sandbox.pause();
    await expect(sandbox.updateNetwork({})).rejects.toThrow(/is paused/);
    await sandbox.connect();
    for (const each of [sandbox, copy, fork]) {
      expect(await statuses(each, port, "good.example", "best.example")).toEqual(["200", "403"]);
      expect((await each.getInfo()).network).toMatchObject(network);
    }
    expect(await statuses(narrower, port, "good.example")).toEqual(["403"]);
    // Each has its own from then on.
    await copy.updateNetwork({});
    expect(await statuses(copy, port, "best.example")).toEqual(["200"]);
    expect(await statuses(sandbox, port, "best.example")).toEqual(["403"]);
  });

  it("work in containers", { ...needs("docker"), timeout: 240_000 }, async () => {
    const port = await playHost();
    const base: NetworkTemplate = {
      network: everyName,
      create: ({ network = "none" }) =>
        new DockerCommandLineCodeExecutor({ image: "fenced-test:python", workspacePath: "/home/user", network }),
    };
    await using server = await startServer({ templates: { base } });
    const network = { allowOut: ["good.example"], denyOut: ["0.0.0.0/0"] };
    const sandbox = await Sandbox.create("base", { ...server.client, network });
    expect(await statuses(sandbox, port, "good.example", "best.example")).toEqual(["200", "403"]);
    await sandbox.updateNetwork({ denyOut: ["127.0.0.2"] });
    expect(await statuses(sandbox, port, "best.example", "second.example")).toEqual(["200", "403"]);
  });
});

describe("templates", () => {
  it("without a network deny all that clients deny, and allow nothing", slow, async () => {
    await using server = await startServer({ templates: { base: sandboxed("none") } });
    const network = { denyOut: ["10.0.0.0/8"] };
    const sandbox = await Sandbox.create("base", { ...server.client, network });
    await sandbox.updateNetwork({ allowInternetAccess: false });
    await sandbox.updateNetwork({});
    const wanted = { allowOut: ["pypi.org"], denyOut: ["0.0.0.0/0"] };
    await expect(sandbox.updateNetwork(wanted)).rejects.toThrow(/"pypi\.org" is not in the network policy/);
    await expect(Sandbox.create("base", { ...server.client, network: wanted })).rejects.toThrow(
      /"pypi\.org" is not in/,
    );
  });

  it.each([
    ["open", sandboxed("open")],
    ["not known", sandboxed("open").create],
  ] as const)("whose network is %s have sandboxes without any, and no rules", slow, async (_, base) => {
    await using server = await startServer({ templates: { base } });
    const { client } = server;
    const sandbox = await Sandbox.create("base", client);
    await sandbox.updateNetwork({ allowInternetAccess: true });
    await expect(sandbox.updateNetwork({ denyOut: ["0.0.0.0/0"] })).rejects.toThrow(/no network policy by which/);
    const partly = { denyOut: ["10.0.0.0/8"] };
    await expect(Sandbox.create("base", { ...client, network: partly })).rejects.toThrow(/no network policy by which/);
    const host = await playHost();
    for (const options of [{ allowInternetAccess: false }, { network: { denyOut: ["0.0.0.0/0"] } }]) {
      const cutOff = await Sandbox.create("base", { ...client, ...options });
      const { stdout } = await cutOff.commands.run(`python3 -c 'import socket
print(socket.socket().connect_ex(("127.0.0.1", ${host})) != 0)'`);
      expect(stdout).toBe("True\n");
      await cutOff.updateNetwork({ allowInternetAccess: false });
      await expect(cutOff.updateNetwork({})).rejects.toThrow(/without a network and cannot get one/);
    }
  });

  it("that do not pass the network on are refused, and leave nothing", slow, async () => {
    const create = () => new LocalCommandLineCodeExecutor({ isolation: "os-sandbox", network: "open" });
    const templates = {
      limited: { network: everyName, create },
      none: { network: "none", create },
      mere: create,
    } as const;
    await using server = await startServer({ templates });
    for (const [name, options] of [
      ["limited", {}],
      ["none", {}],
      ["mere", { allowInternetAccess: false }],
    ] as const) {
      const creating = Sandbox.create(name, { ...server.client, ...options });
      await expect(creating).rejects.toThrow(/must pass `network` on/);
    }
    expect(await (await fetch(`${server.url}/v2/sandboxes`, { headers: { "x-api-key": apiKey } })).json()).toEqual([]);
  });
});

const all = ["0.0.0.0/0"];

describe("rules that are wrong or cannot be enforced", () => {
  const long = "a".repeat(500_000);
  it.each([
    [400, { denyOut: ["example.com"] }, /"example\.com\\" is not an address or a range. Names can only be allowed/],
    [400, { denyOut: ["10.0.0.0/33"] }, /not an address/],
    [400, { denyOut: ["0x7f.0.0.1"] }, /not an address/],
    [400, { denyOut: [""] }, /not an address/],
    [400, { denyOut: ["*"] }, /not an address/],
    [400, { denyOut: ["fe80::1%eth0"] }, /not an address/],
    [400, { denyOut: "10.0.0.0/8" }, /denyOut: .*array/],
    [400, { denyOut: [7] }, /denyOut/],
    [400, { denyOut: { 0: "10.0.0.0/8" } }, /denyOut/],
    [400, { denyOut: Array.from({ length: 10_000 }, () => "10.0.0.1") }, /denyOut: .*1000/],
    [400, { allowOut: Array.from({ length: 10_000 }, (_, at) => `h${at}.example`), denyOut: all }, /allowOut: .*1000/],
    [400, { allowOut: [`${long}.example`], denyOut: all }, /allowOut.0: .*300/],
    [400, { allowOut: ["a".repeat(1_100_000)], denyOut: all }, /more than 1 MiB/],
    [400, { allowOut: [`${"a".repeat(290)}.com`], denyOut: all }, /is not a name/],
    [400, { allowOut: ["https://pypi.org/"], denyOut: all }, /is not a name/],
    [400, { allowOut: ["pypi.org:443"], denyOut: all }, /without a port/],
    [400, { allowOut: ["a.*.example"], denyOut: all }, /is not a name/],
    [400, { allowOut: ["127.1"], denyOut: all }, /is not a name/],
    [400, { allowOut: ["a\nb"], denyOut: all }, /is not a name/],
    [400, { allowOut: ["pypi.org"] }, /no effect if nothing is denied/],
    [400, { allowOut: ["1.1.1.1"] }, /no effect if nothing is denied/],
    [400, { allowOut: ["pypi.org"], denyOut: ["10.0.0.0/8"] }, /names need that all other traffic is denied/],
    [501, { rules: { "a.example": [{ transform: { headers: { "x-key": "1" } } }] } }, /does not change requests/],
    [501, { rules: "x" }, /does not change requests/],
    [501, { egressProxy: { address: "proxy.example:1080" } }, /`upstreamProxy`/],
    [501, { httpsPorts: [3000] }, /network\.httpsPorts: this server does not support it/],
    [501, { denyPorts: [25] }, /network\.denyPorts: this server does not support it/],
  ] as const)("are refused with %i: case %#", async (status, network, message) => {
    // It has no process before it is needed.
    const base: NetworkTemplate = { network: everyName, create: () => Promise.reject(new Error("it was created")) };
    await using server = await startServer({ templates: { base } });
    const [code, text] = await asked(server, "POST", "/v2/sandboxes", { templateID: "base", network });
    expect([code, text.length < 2000]).toEqual([status, true]);
    expect(text).toMatch(message);
    expect(JSON.parse(text)).toEqual({ code: status, message: expect.any(String) });
  });

  it("change nothing when they are updated", slow, async () => {
    const port = await playHost();
    await using server = await startServer({ templates: { base: sandboxed(everyName) } });
    const sandbox = await Sandbox.create("base", { ...server.client, network: { denyOut: ["127.0.0.2"] } });
    const at = `/sandboxes/${sandbox.sandboxId}/network`;
    for (const [status, wanted] of [
      [400, { denyOut: ["example.com"] }],
      [400, { allow_internet_access: "no" }],
      [400, [all]],
      [400, { denyOut: Array.from({ length: 10_000 }, () => "10.0.0.1") }],
      [501, { rules: { "a.example": [{ transform: { headers: { "x-key": "1" } } }] } }],
      [501, { egressProxy: { address: "proxy.example:1080" } }],
      [501, { allowPublicTraffic: false }],
      [501, { unheardOf: ["10.0.0.0/8"] }],
    ] as const) {
      expect((await asked(server, "PUT", at, wanted))[0]).toBe(status);
    }
    expect((await asked(server, "PUT", "/sandboxes/inobody/network", {}))[0]).toBe(404);
    expect(await statuses(sandbox, port, "good.example", "second.example")).toEqual(["200", "403"]);
  });

  it("are not those that only look unusual", slow, async () => {
    const port = await playHost();
    await using server = await startServer({ templates: { base: sandboxed(everyName) } });
    const network = {
      allowOut: ["Bücher.Example", "::/0", "2001:DB8::1", "x.example."],
      denyOut: [...all, "::/0", "10.1.2.3/8", "::ffff:127.0.0.2"],
    };
    const sandbox = await Sandbox.create("base", { ...server.client, network });
    expect(await statuses(sandbox, port, "xn--bcher-kva.example", "x.example", "good.example")).toEqual([
      "200",
      "200",
      "403",
    ]);
    const many = Array.from({ length: 1000 }, (_, at) => `10.${at >> 8}.${at & 255}.0/24`);
    await sandbox.updateNetwork({ denyOut: many });
    expect(await statuses(sandbox, port, "good.example")).toEqual(["200"]);
    expect((await sandbox.getInfo()).network?.denyOut).toEqual(many);
    await sandbox.updateNetwork({ rules: {}, denyOut: [], allowOut: [] });
  });
});
