import { createHash } from "node:crypto";
import { once } from "node:events";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer, request, type Server } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { BackendUnavailableError } from "@fenced/core";
import { needs } from "@fenced/test-support";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { DockerCommandLineCodeExecutor } from "../src/index.ts";
import { createExecutor, printed } from "./support/create-executor.ts";

let directory = "";
const saved = { ...process.env };
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "fenced-test-"));
  for (const name of ["DOCKER_HOST", "DOCKER_CONTEXT", "DOCKER_TLS_VERIFY", "DOCKER_CERT_PATH"]) {
    Reflect.deleteProperty(process.env, name);
  }
  process.env["DOCKER_CONFIG"] = directory;
});
afterEach(async () => {
  for (const name of Object.keys(process.env)) if (!(name in saved)) Reflect.deleteProperty(process.env, name);
  Object.assign(process.env, saved);
  await rm(directory, { recursive: true, force: true });
});

async function failure(options: ConstructorParameters<typeof DockerCommandLineCodeExecutor>[0] = {}): Promise<string> {
  const error: unknown = await new DockerCommandLineCodeExecutor(options).start().catch((thrown: unknown) => thrown);
  if (!BackendUnavailableError.isInstance(error)) {
    throw new Error(`expected a BackendUnavailableError, not ${String(error)}`);
  }
  return error.message;
}

async function useContext(name: string, host: string): Promise<void> {
  const meta = join(directory, "contexts/meta", createHash("sha256").update(name).digest("hex"));
  await mkdir(meta, { recursive: true });
  await writeFile(join(meta, "meta.json"), JSON.stringify({ Name: name, Endpoints: { docker: { Host: host } } }));
  await writeFile(join(directory, "config.json"), JSON.stringify({ currentContext: name }));
}

describe("a daemon that does not answer", () => {
  it("is named with what it said, and no other one is used in its place", async () => {
    const given = await failure({ docker: `unix://${directory}/none.sock` });
    expect(given).toMatch(/the option `docker`: .*none\.sock: there is none/);
    expect(given).not.toMatch(/default socket/);
    process.env["DOCKER_HOST"] = "tcp://127.0.0.1:9";
    const host = await failure();
    expect(host).toMatch(/DOCKER_HOST: tcp:\/\/127\.0\.0\.1:9: .*ECONNREFUSED/);
    expect(host).not.toMatch(/socket:/);
    expect(host).toMatch(/option `docker`, or DOCKER_HOST\.$/);
  });

  it("of the current context is named too", async () => {
    await useContext("elsewhere", "tcp://127.0.0.1:9");
    expect(await failure()).toMatch(
      /DOCKER_HOST: not set\n.*the current Docker context: tcp:\/\/127\.0\.0\.1:9: .*ECONNREFUSED/,
    );
    process.env["DOCKER_CONTEXT"] = "missing";
    expect(await failure()).toMatch(/the current Docker context: there is no context "missing"/);
  });

  it("but hangs is given up", { timeout: 30_000 }, async () => {
    const server = createServer(() => {});
    const address = await listen(server);
    expect(await failure({ docker: address })).toMatch(/did not answer within 5 s/);
    server.closeAllConnections();
    server.close();
  });
});

describe("daemons that are found", needs("docker"), () => {
  const socket = "/var/run/docker.sock";

  it("by DOCKER_HOST, by a context, by default, and over TCP", async () => {
    const server = await relayTo(socket);
    const address = await listen(server);
    const seen = async () => {
      await using executor = createExecutor();
      return await printed(executor, "python", "print(42)");
    };
    expect(await seen()).toBe("42");
    process.env["DOCKER_HOST"] = `unix://${socket}`;
    expect(await seen()).toBe("42");
    Reflect.deleteProperty(process.env, "DOCKER_HOST");
    await useContext("relay", address);
    expect(await seen()).toBe("42");
    server.closeAllConnections();
    server.close();
    await expect(seen()).rejects.toThrow(/the current Docker context: tcp:/);
  });
});

async function listen(server: Server): Promise<string> {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("the server has no port");
  return `tcp://127.0.0.1:${address.port}`;
}

/** The daemon at `socketPath`, over TCP. */
async function relayTo(socketPath: string): Promise<Server> {
  const server = createServer((incoming, outgoing) => {
    const { method, url: path, headers } = incoming;
    const passed = request({ socketPath, method, path, headers }, (answer) => {
      outgoing.writeHead(answer.statusCode ?? 500, answer.headers);
      answer.pipe(outgoing);
    });
    passed.on("error", () => outgoing.destroy());
    outgoing.on("close", () => passed.destroy());
    incoming.pipe(passed);
  });
  server.on("upgrade", ({ method, url: path, headers }, client) => {
    const passed = request({ socketPath, method, path, headers });
    passed.on("upgrade", (answer, upstream) => {
      const lines = Object.entries(answer.headers).map(([name, value]) => `${name}: ${String(value)}\r\n`);
      client.write(`HTTP/1.1 101 UPGRADED\r\n${lines.join("")}\r\n`);
      upstream.pipe(client);
      client.pipe(upstream);
      client.on("error", () => upstream.destroy());
      upstream.on("error", () => client.destroy());
    });
    passed.on("error", () => client.destroy());
    passed.end();
  });
  return server;
}
