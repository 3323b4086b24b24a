import { once } from "node:events";
import { writeFile } from "node:fs/promises";
import { createServer, type Server } from "node:http";
import { join } from "node:path";
import { needs } from "@fenced/test-support";
import { relayDaemon } from "@fenced/test-support/daemon-relay";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { createExecutor, printed } from "./support/create-executor.ts";
import { cleanDockerEnvironment, startFailure, type DockerEnvironment } from "./support/docker-environment.ts";

let environment: DockerEnvironment;
beforeEach(async () => {
  environment = await cleanDockerEnvironment();
});
afterEach(async () => {
  await environment.restore();
});

describe("a daemon that does not answer", () => {
  it("is named in the error with its reason, and no other daemon replaces it", async () => {
    const given = await startFailure({ docker: `unix://${environment.directory}/none.sock` });
    expect(given).toMatch(/the option `docker`: .*none\.sock: does not exist/);
    expect(given).not.toMatch(/default socket/);
    process.env["DOCKER_HOST"] = "tcp://127.0.0.1:9";
    const host = await startFailure();
    expect(host).toMatch(/DOCKER_HOST: tcp:\/\/127\.0\.0\.1:9: .*ECONNREFUSED/);
    expect(host).not.toMatch(/socket:/);
    expect(host).toMatch(/option `docker` or DOCKER_HOST to its address\.$/);
  });

  it("of the current context is named, too", async () => {
    await environment.useContext("elsewhere", "tcp://127.0.0.1:9");
    expect(await startFailure()).toMatch(
      /DOCKER_HOST: not set\n.*the current Docker context: tcp:\/\/127\.0\.0\.1:9: .*ECONNREFUSED/,
    );
    process.env["DOCKER_CONTEXT"] = "missing";
    expect(await startFailure()).toMatch(/the current Docker context: there is no context "missing"/);
  });

  it("is not looked for with a broken configuration of Docker, which is named", async () => {
    const file = join(environment.directory, "config.json");
    for (const [content, reason] of [
      ["{ broken", /JSON/],
      ['{ "currentContext": 5 }', /currentContext: .*expected string/],
    ] as const) {
      await writeFile(file, content);
      const message = await startFailure();
      expect(message).toContain(`the current Docker context: ${file} cannot be used: `);
      expect(message).toMatch(reason);
    }
  });

  it("is given up after 5 s if it hangs", { timeout: 120_000 }, async () => {
    const server = createServer(() => {});
    const address = await listen(server);
    expect(await startFailure({ docker: address })).toMatch(/did not answer within 5 s/);
    server.closeAllConnections();
    server.close();
  });
});

describe("a daemon is found", needs("docker"), () => {
  const socket = "/var/run/docker.sock";

  it("by the option, whatever the environment variables say", async () => {
    process.env["DOCKER_HOST"] = "tcp://127.0.0.1:9";
    process.env["DOCKER_TLS_VERIFY"] = "1";
    process.env["DOCKER_CERT_PATH"] = "/nowhere";
    await using executor = createExecutor({ docker: `unix://${socket}` });
    expect(await printed(executor, "python", "print(42)")).toBe("42");
  });

  it("by DOCKER_HOST, by a context, by default and over TCP", async () => {
    const relay = await relayDaemon(socket);
    const { address } = relay;
    const seen = async () => {
      await using executor = createExecutor();
      return await printed(executor, "python", "print(42)");
    };
    expect(await seen()).toBe("42");
    process.env["DOCKER_HOST"] = `unix://${socket}`;
    expect(await seen()).toBe("42");
    Reflect.deleteProperty(process.env, "DOCKER_HOST");
    await environment.useContext("relay", address);
    expect(await seen()).toBe("42");
    await relay[Symbol.asyncDispose]();
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
