// Starts your own hardened container, which is removed even if this program is killed.
// needs: docker
import assert from "node:assert/strict";
// #region container
import { randomUUID } from "node:crypto";
import { ContainerLeash, ensureImage, findDaemon, limitsConfig, removeContainer } from "@fenced/docker-daemon";
// #endregion

Object.assign(process.env, { SANDBOX_IMAGE: "fenced-test:python" });

// #region container
const daemon = await findDaemon(undefined);
const image = process.env.SANDBOX_IMAGE ?? "python:3-slim";
await ensureImage(daemon.docker, { image, pull: "missing" }, AbortSignal.timeout(600_000));

const owner = randomUUID();
const leash = new ContainerLeash({ transport: daemon.transport, label: `my.owner=${owner}`, end: "remove" });
const container = await leash.creating(() =>
  daemon.docker.createContainer({
    Image: image,
    Cmd: ["python3", "-c", "print(6 * 7)"],
    Labels: { "my.owner": owner },
    HostConfig: { ...limitsConfig({ memoryBytes: 268_435_456 }), NetworkMode: "none" },
  }),
);
await container.start();
await container.wait();
const { State: state } = await container.inspect();
console.log(state.ExitCode); // 0
await removeContainer(container);
await leash.release();
daemon.release();
// #endregion
assert.equal(state.ExitCode, 0);
