import { once } from "node:events";
import type { ServerResponse } from "node:http";
import { afterEach, describe, expect, it, vi } from "vitest";
import { KubernetesCommandLineCodeExecutor, type KubernetesExecutorOptions } from "../src/index.ts";
import { KubeconfigFiles, kubeconfigOf } from "./support/kubeconfig-files.ts";
import { type Behaviour, json, PlayedServer } from "./support/played-server.ts";

/** Starts an executor on a server with this behaviour; returns the error, and the server with what it saw. */
async function startOn(behaviour: Behaviour, options: KubernetesExecutorOptions = {}, user: object = {}) {
  await using server = await PlayedServer.start(behaviour);
  await using files = await KubeconfigFiles.make();
  const kubeconfig = await files.write("played", kubeconfigOf({ cluster: { server: server.url }, user }));
  const executor = new KubernetesCommandLineCodeExecutor({ kubeconfig, ...options });
  const error: unknown = await executor.start().catch((thrown: unknown) => thrown);
  return { message: error instanceof Error ? error.message : "it started", server };
}

const conflict = { kind: "Status", reason: "Conflict", message: "resourcequotas: the object has been modified" };
const neverPulled = {
  metadata: { name: "played" },
  status: { containerStatuses: [{ name: "code", state: { waiting: { reason: "ErrImageNeverPull" } } }] },
};
const notPulled = (answer: ServerResponse) => json(answer, 200, { type: "ADDED", object: neverPulled });

afterEach(() => vi.unstubAllEnvs());

describe.concurrent("an API server", () => {
  it("whose quota reports a conflict is asked for the pod again", async () => {
    const create = (answer: ServerResponse, attempt: number) =>
      json(answer, attempt < 3 ? 409 : 201, attempt < 3 ? conflict : neverPulled);
    const { message, server } = await startOn({ create, watch: notPulled });
    expect(message).toMatch(/image could not be pulled/);
    expect(server.count("POST")).toBe(3);
  });

  it("that has already created the pod, although its answer was lost, is not asked for another one", async () => {
    const there = { kind: "Status", reason: "AlreadyExists", message: "pods already exists" };
    const { message, server } = await startOn({ create: (answer) => json(answer, 409, there), watch: notPulled });
    expect(message).toMatch(/image could not be pulled/);
    expect(server.count("POST")).toBe(1);
  });

  it.for([Number.MAX_VALUE, 300_000.5])("has any time that startTimeoutMs allows: %s", async (startTimeoutMs) => {
    const { message } = await startOn({ watch: notPulled }, { startTimeoutMs });
    expect(message).toMatch(/image could not be pulled/);
  });

  it("that would not delete a Job that has ended is refused, and keeps none", async () => {
    const create = (answer: ServerResponse) => json(answer, 201, { kind: "Job", spec: { backoffLimit: 0 } });
    const get = (answer: ServerResponse) => json(answer, 200, { items: [] });
    const { message, server } = await startOn({ create, get }, { keepAliveMs: 60_000 });
    expect(message).toMatch(/does not delete Jobs that have ended.*keepAliveMs.*1\.21/s);
    expect(server.requests.map(({ method, path }) => `${method} ${path.split("?")[0]}`)).toContainEqual(
      expect.stringMatching(/^DELETE \/apis\/batch\/v1\/namespaces\/default\/jobs\/fenced-/),
    );
  });

  it("that sends Retry-After gets no request until then", async () => {
    const times: number[] = [];
    const create = (answer: ServerResponse, attempt: number) => {
      times.push(performance.now());
      if (attempt === 1) answer.setHeader("retry-after", "2");
      json(answer, attempt === 1 ? 429 : 201, {});
    };
    await startOn({ create, watch: notPulled });
    expect(times).toHaveLength(2);
    expect((times[1] ?? 0) - (times[0] ?? 0)).toBeGreaterThan(1990);
  });

  it("whose answer breaks off does not make the pod count as gone", async () => {
    const { message } = await startOn({
      watch: (answer) => answer.end(),
      get: (answer) => answer.writeHead(200, { "content-length": 1000 }).write('{"metadata"', () => answer.destroy()),
    });
    expect(message).toMatch(/is incomplete or not JSON/);
  });

  it("whose answer has more values than anyone needs is not believed", async () => {
    const create = (answer: ServerResponse) =>
      json(answer, 201, { values: Array.from({ length: 1_000_001 }, () => 0) });
    const { message } = await startOn({ create, watch: notPulled });
    expect(message).toMatch(/is incomplete or not JSON/);
  });

  it("gets the exec a few times before it says that the pod runs", async () => {
    const event = (state: object) => {
      const pod = { metadata: { name: "played" }, status: { containerStatuses: [{ name: "code", state }] } };
      return `${JSON.stringify({ type: "MODIFIED", object: pod })}\n`;
    };
    const refusal = JSON.stringify({ kind: "Status", message: "container not found" });
    let [execs, run] = [0, () => {}];
    const { message } = await startOn({
      watch: (answer) => {
        answer.writeHead(200).write(event({ waiting: { reason: "ContainerCreating" } }));
        run = () => void answer.write(event({ running: {} }));
      },
      exec: (socket) => {
        execs += 1;
        // Another attempt would have come by then.
        if (execs === 4) setTimeout(run, 1000);
        socket.end(`HTTP/1.1 500 Error\r\ncontent-length: ${refusal.length}\r\n\r\n${refusal}`);
      },
    });
    expect(message).toMatch(/container not found/);
    expect(execs).toBe(5);
  });

  it("that rejects the exec with an endless reason does not make start() hang", async () => {
    const { message, server } = await startOn({
      exec: (socket) => socket.write("HTTP/1.1 403 Forbidden\r\ncontent-length: 1000\r\n\r\n{"),
    });
    expect(message).toMatch(/rejected the (pod|request)/);
    expect(server.count("DELETE")).toBe(1);
  });

  it("that falls silent during a watch is asked again", async () => {
    let watches = 0;
    const { message } = await startOn({
      watch: (answer) => ((watches += 1) > 1 ? notPulled(answer) : answer.writeHead(200).flushHeaders()),
      get: (answer) => json(answer, 200, { metadata: { name: "played" } }),
    });
    expect(message).toMatch(/image could not be pulled/);
  }, 120_000);

  it("that creates the pod only after the caller has given up is asked to delete it", async () => {
    const giveUp = new AbortController();
    await using server = await PlayedServer.start({
      create: (answer) => {
        giveUp.abort(new Error("given up"));
        setTimeout(() => json(answer, 201, {}), 500);
      },
    });
    await using files = await KubeconfigFiles.make();
    const kubeconfig = await files.write("played", kubeconfigOf({ cluster: { server: server.url }, user: {} }));
    const executor = new KubernetesCommandLineCodeExecutor({ kubeconfig });
    await expect(executor.start({ signal: giveUp.signal })).rejects.toThrow("given up");
    expect(server.requests.map(({ method }) => method)).toEqual(["POST", "DELETE"]);
  });

  it("that never answers does not keep start() beyond its time limit", async () => {
    const { message, server } = await startOn({ create: () => {}, remove: () => {} }, { startTimeoutMs: 500 });
    expect(message).toMatch(/did not run within 0\.5 s/);
    expect(server.count("DELETE")).toBe(1);
  }, 120_000);

  it("gets the token of `tokenFile`, not the one in the kubeconfig", async () => {
    await using files = await KubeconfigFiles.make();
    const tokenFile = await files.write("token", "renewed\n");
    const { server } = await startOn({ watch: notPulled }, {}, { token: "first", tokenFile });
    expect(new Set(server.requests.map(({ authorization }) => authorization))).toEqual(new Set(["Bearer renewed"]));
  });
});

describe("a kubeconfig", () => {
  it("may have empty or null settings, as kubectl writes them", async () => {
    await using server = await PlayedServer.start({ watch: notPulled });
    await using files = await KubeconfigFiles.make();
    const kubeconfig = await files.write("empty", {
      "current-context": "test",
      clusters: [{ name: "test", cluster: { server: server.url, "proxy-url": "", "certificate-authority": null } }],
      users: [{ name: "test", user: { username: "", exec: null, "auth-provider": null, token: "given" } }],
      contexts: [
        { name: "test", context: { cluster: "test", user: "test", namespace: "" } },
        { name: "nobody", context: { cluster: "test", user: "" } },
      ],
      preferences: {},
    });
    for (const [context, authorization] of [["test", "Bearer given"] as const, ["nobody", undefined] as const]) {
      const executor = new KubernetesCommandLineCodeExecutor({ kubeconfig, context });
      await expect(executor.start()).rejects.toThrow(/image could not be pulled/);
      expect(server.requests.at(-1)).toMatchObject({ authorization });
      expect(server.requests.at(-1)?.path).toMatch(/^\/api\/v1\/namespaces\/default\/pods\//);
    }
  });

  it.for([
    ["when the server rejects them", "2100-01-01T00:00:00Z", ["Bearer 1", "Bearer 2", "Bearer 2"]],
    ["when they expire", "2000-01-01T00:00:00Z", ["Bearer 1", "Bearer 2", "Bearer 3"]],
  ] as const)("whose plugin provides credentials gets new ones %s", async ([, expires, sent]) => {
    await using files = await KubeconfigFiles.make();
    const status = `{"token":"$(wc -l < "$1" | tr -d " ")","expirationTimestamp":"${expires}"}`;
    const answer = `{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":${status}}`;
    await files.write("plugin", `#!/bin/sh\necho asked >> "$1"\ncat <<END\n${answer}\nEND\n`, 0o700);
    const exec = {
      apiVersion: "client.authentication.k8s.io/v1",
      command: "./plugin",
      args: [`${files.directory}/asked`],
    };
    const create = (said: ServerResponse, attempt: number) =>
      json(said, attempt === 1 && sent[2] === "Bearer 2" ? 401 : 201, neverPulled);
    await using server = await PlayedServer.start({ create, watch: notPulled });
    const cluster = { server: server.url };
    const kubeconfig = await files.write("plugged", kubeconfigOf({ cluster, user: { exec } }));
    await expect(new KubernetesCommandLineCodeExecutor({ kubeconfig }).start()).rejects.toThrow(/could not be pulled/);
    expect(server.requests.slice(0, 3).map(({ authorization }) => authorization)).toEqual(sent);
  });

  it("whose plugin never ends does not keep start() from being aborted", async () => {
    await using files = await KubeconfigFiles.make();
    const begun = `${files.directory}/begun`;
    await files.write("plugin", `#!/bin/sh\ntouch ${begun}\nexec sleep 50\n`, 0o700);
    const exec = { apiVersion: "client.authentication.k8s.io/v1", command: "./plugin" };
    const kubeconfig = await files.write(
      "slow",
      kubeconfigOf({ cluster: { server: "http://127.0.0.1:1" }, user: { exec } }),
    );
    const giveUp = new AbortController();
    const started = new KubernetesCommandLineCodeExecutor({ kubeconfig }).start({ signal: giveUp.signal });
    setTimeout(() => giveUp.abort(new Error("given up")), 100);
    await once(giveUp.signal, "abort");
    await expect(started).rejects.toThrow("given up");
  }, 120_000);
});
