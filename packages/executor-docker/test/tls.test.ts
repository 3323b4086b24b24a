import { cp, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { needs } from "@fenced/test-support";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { DockerExecutorOptions } from "../src/index.ts";
import { createExecutor, printed } from "./support/create-executor.ts";
import { cleanDockerEnvironment, startFailure, type DockerEnvironment } from "./support/docker-environment.ts";
import { makeCertificates, startTlsRelay, type TlsRelay } from "./support/tls-relay.ts";

describe("a daemon behind TLS", needs("docker", "openssl"), () => {
  let directory = "";
  let good = "";
  let other = "";
  let relay: TlsRelay;
  let address = "";
  let environment: DockerEnvironment;
  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), "fenced-test-"));
    [good, other] = [join(directory, "good"), join(directory, "other")];
    await makeCertificates(good);
    await makeCertificates(other);
    relay = await startTlsRelay("/var/run/docker.sock", good);
    address = `tcp://127.0.0.1:${relay.port}`;
  });
  afterAll(async () => {
    await relay[Symbol.asyncDispose]();
    await rm(directory, { recursive: true });
  });
  beforeEach(async () => {
    environment = await cleanDockerEnvironment();
  });
  afterEach(async () => {
    await environment.restore();
  });

  const answer = async (options: DockerExecutorOptions = {}): Promise<string> => {
    await using executor = createExecutor(options);
    return await printed(executor, "python", "print(6 * 7)");
  };

  it("is found by DOCKER_HOST, DOCKER_TLS_VERIFY and DOCKER_CERT_PATH", async () => {
    Object.assign(process.env, { DOCKER_HOST: address, DOCKER_TLS_VERIFY: "1", DOCKER_CERT_PATH: good });
    expect(await answer()).toBe("42");
    process.env["DOCKER_CERT_PATH"] = other;
    expect(await startFailure()).toMatch(/DOCKER_HOST: tcp:.*its certificate is not trusted \(.*ca\.pem/);
  });

  it("is found by a context with its certificates", async () => {
    await environment.useContext("secure", address, good);
    expect(await answer()).toBe("42");
    await environment.useContext("strange", address, other);
    expect(await startFailure()).toMatch(/the current Docker context: tcp:.*its certificate is not trusted/);
  });

  it("is found through the option, and its name is verified", async () => {
    expect(await answer({ docker: { host: address, certPath: good } })).toBe("42");
    const otherName = address.replace("127.0.0.1", "localhost");
    const failure = await startFailure({ docker: { host: otherName, certPath: good } });
    expect(failure).toMatch(/its certificate is not trusted \(Hostname\/IP does not match/);
  });

  it("is not verified with tlsVerify: false, but still verifies its clients", async () => {
    const mixed = join(directory, "mixed");
    await cp(good, mixed, { recursive: true });
    await cp(join(other, "ca.pem"), join(mixed, "ca.pem"));
    expect(await startFailure({ docker: { host: address, certPath: mixed } })).toMatch(/certificate is not trusted/);
    expect(await answer({ docker: { host: address, certPath: mixed, tlsVerify: false } })).toBe("42");
    const stranger = { host: address, certPath: other, tlsVerify: false };
    expect(await startFailure({ docker: stranger })).toMatch(/it refused the TLS connection/);
  });

  it("rejects clients that have no certificate or do not use TLS", async () => {
    const trusting = join(directory, "trusting");
    await cp(join(good, "ca.pem"), join(trusting, "ca.pem"), { recursive: true });
    expect(await startFailure({ docker: { host: address, certPath: trusting } })).toMatch(/refused the TLS connection/);
    expect(await startFailure({ docker: address })).toMatch(
      /the option `docker`: tcp:.*if it uses TLS, set `certPath`/,
    );
  });
});
