import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { needs } from "@fenced/test-support";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { Client, current } from "./client.ts";
import { connectTo } from "./raw-request.ts";

/** What stands between the start and the stop of an emulator in a program that has to end by itself then. */
const program = (between: string): string => `
  import { Client } from ${JSON.stringify(join(import.meta.dirname, "client.ts"))};
  const client = await Client.open();
  ${between}
  await client.emulator.stop();
`;

describe("stop", needs("python3"), () => {
  let directory = "";

  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), "emulator-stop-"));
    vi.stubEnv("TMPDIR", directory);
  });

  afterEach(async () => {
    vi.unstubAllEnvs();
    await rm(directory, { recursive: true, force: true });
  });

  it("lets no request make a session that looks for one afterwards", async () => {
    await using client = await Client.open({ faults: [{ kind: "latency", milliseconds: 500 }] });
    const { emulator } = client;
    const { pathname } = new URL(emulator.endpoint);
    const socket = connectTo(emulator);
    socket.on("error", () => {});
    socket.write(
      `GET ${pathname}/files?api-version=${current}&identifier=session-1 HTTP/1.1\r\nHost: pool\r\n` +
        `Authorization: Bearer ${emulator.token()}\r\nExpect: 100-continue\r\n\r\n`,
    );
    // The emulator says "Continue" as it takes the request up, which then waits for as long as the fault says.
    await once(socket, "data");
    await emulator.stop();
    await sleep(1000);
    expect(emulator.sessions()).toEqual([]);
    expect(await readdir(directory)).toEqual([]);
  });

  it("leaves no timer that would keep the program from its end", { timeout: 120_000 }, async () => {
    const between = `
      const background = { executionType: "Asynchronous", timeoutInSeconds: 80_000 };
      await client.execute("import time; time.sleep(1000)", background);
      await client.execute("1", background);
    `;
    const flags = ["--conditions=@fenced/source", "--import", "tsx", "--input-type=module", "--eval"];
    const child = spawn(process.execPath, [...flags, program(between)], { stdio: "inherit", timeout: 60_000 });
    expect(await once(child, "exit")).toEqual([0, null]);
  });
});
