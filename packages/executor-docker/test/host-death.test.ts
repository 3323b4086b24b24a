import { spawn, type ChildProcess } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { needs } from "@fenced/test-support";
import { bundledCommand } from "@fenced/test-support/bundled-command";
import { relayDaemon, type RelayHooks } from "@fenced/test-support/daemon-relay";
import { expect, it, describe } from "vitest";
import { docker } from "./support/docker-cli.ts";

const [program, ...words] = await bundledCommand(join(import.meta.dirname, "fixtures/mortal-host.ts"));
const socket = "/var/run/docker.sock";

function startHost(...args: readonly string[]): ChildProcess {
  return spawn(program, [...words, ...args], { stdio: ["ignore", "pipe", "inherit"] });
}

/** Waits until no container of a host is left, whatever its state. */
async function untilNoneOf(label: string): Promise<void> {
  const left = () => docker("ps", "--all", "--quiet", "--filter", `label=fenced-test.host=${label}`);
  while ((await left()) !== "") await sleep(100);
}

describe("a host that is killed", { ...needs("docker"), timeout: 120_000 }, () => {
  it.each<[string, (kill: () => void) => RelayHooks]>([
    [
      "while the daemon creates its container",
      (kill) => ({ before: ({ url = "" }) => (url.includes("/containers/create") ? kill() : undefined) }),
    ],
    [
      "when its container is created but not started",
      (kill) => ({ answered: ({ url = "" }) => (url.includes("/containers/create") ? kill() : undefined) }),
    ],
    [
      "while its container starts",
      (kill) => ({ before: ({ url = "" }) => (url.endsWith("/start") ? kill() : undefined) }),
    ],
  ])("%s leaves no container behind", async (_, hooks) => {
    const label = randomUUID();
    let asked = false;
    await using relay = await relayDaemon(
      socket,
      hooks(() => {
        asked = true;
        host.kill("SIGKILL");
      }),
    );
    const host = startHost(relay.address, label);
    await once(host, "exit");
    expect(asked).toBe(true);
    // Earlier requests to the daemon may still be under way.
    await sleep(1000);
    await untilNoneOf(label);
  });

  it("leaves no container behind, even if its code has stopped the supervisor", async () => {
    const host = startHost(`unix://${socket}`, randomUUID(), "kill -STOP -1; sleep 1000");
    if (!host.stdout) throw new Error("no output");
    const [name] = (await once(createInterface(host.stdout), "line")) as [string];
    // Not with `docker exec`, whose own start the code would stop as well.
    while (!/^T/m.test(await docker("top", name, "-eo", "stat,pid"))) await sleep(100);
    host.kill("SIGKILL");
    const left = () => docker("ps", "--all", "--quiet", "--filter", `name=${name}`);
    while ((await left()) !== "") await sleep(100);
    expect(await left()).toBe("");
  });
});
