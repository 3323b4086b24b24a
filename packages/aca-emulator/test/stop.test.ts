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

/** A program that starts an emulator, runs `between` and stops the emulator, and must then end by itself. */
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

  it("keeps a request that is still waiting from creating a session", async () => {
    await using client = await Client.open({ faults: [{ kind: "latency", milliseconds: 500 }] });
    const { emulator } = client;
    const { pathname } = new URL(emulator.endpoint);
    const socket = connectTo(emulator);
    socket.on("error", () => {});
    socket.write(
      `GET ${pathname}/files?api-version=${current}&identifier=session-1 HTTP/1.1\r\nHost: localhost\r\n` +
        `Authorization: Bearer ${emulator.token()}\r\nExpect: 100-continue\r\n\r\n`,
    );
    // The emulator sends "Continue" when it takes the request, which then waits for as long as the fault says.
    await once(socket, "data");
    await emulator.stop();
    await sleep(1000);
    expect(emulator.sessions()).toEqual([]);
    expect(await readdir(directory)).toEqual([]);
  });

  it("of a session is final: an unfinished upload does not recreate its directory", async () => {
    await using client = await Client.open();
    const { emulator } = client;
    const parts = new TransformStream<string, string>();
    const writer = parts.writable.getWriter();
    const uploading = fetch(`${emulator.endpoint}/files?api-version=${current}&identifier=session-1&path=sub`, {
      method: "POST",
      headers: { authorization: `Bearer ${emulator.token()}`, "content-type": "multipart/form-data; boundary=edge" },
      body: parts.readable.pipeThrough(new TextEncoderStream()),
      duplex: "half",
    });
    await writer.write("--edge\r\n");
    await expect.poll(() => emulator.sessions()).toEqual(["session-1"]);
    expect((await client.call("DELETE", "session", { identifier: "session-1" })).status).toBe(204);
    await writer.write('Content-Disposition: form-data; name="file"; filename="late"\r\n\r\nlate\r\n--edge--\r\n');
    await writer.close();
    expect((await uploading).status).toBe(404);
    const [own = ""] = await readdir(directory);
    expect(await readdir(join(directory, own), { recursive: true })).not.toContain("late");
  });

  it("leaves no timer that keeps the program alive", { timeout: 120_000 }, async () => {
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
