import { needs } from "@fenced/test-support";
import { describe, expect, it } from "vitest";
import { Client } from "./client.ts";

describe("faults", needs("python3"), () => {
  it("too-many-requests: sends 429 with Retry-After, `times` times after `skip` calls", async () => {
    await using client = await Client.open({
      faults: [{ kind: "too-many-requests", retryAfterMs: 7000, skip: 1, times: 2 }],
    });
    const statuses = [];
    for (let call = 0; call < 4; call += 1) statuses.push(await client.call("GET", "metadata"));
    expect(statuses.map(({ status }) => status)).toEqual([200, 429, 429, 200]);
    expect(statuses[1]?.headers.get("retry-after")).toBe("7");
    expect(statuses[1]?.json.error.code).toBe("TooManyRequests");
  });

  it("server-error: fails before or after the request is carried out", async () => {
    await using client = await Client.open();
    await client.execute("x = 0");
    for (const afterwards of [false, true]) {
      const end = client.emulator.provoke({ kind: "server-error", status: 502, afterwards, on: "executions" });
      expect((await client.execute("x += 1")).status).toBe(502);
      end();
      expect((await client.execute("x")).json.result.executionResult).toBe(afterwards ? 1 : 0);
    }
  });

  it("drop: drops the connection before or after the request is carried out", async () => {
    await using client = await Client.open();
    await client.execute("x = 0");
    for (const afterwards of [false, true]) {
      const end = client.emulator.provoke({ kind: "drop", afterwards });
      await expect(client.execute("x += 1")).rejects.toThrow("fetch failed");
      end();
      expect((await client.execute("x")).json.result.executionResult).toBe(afterwards ? 1 : 0);
    }
  });

  it("latency, expired-token, forbidden and expired-session take effect", async () => {
    await using client = await Client.open();
    await client.execute("1");
    client.emulator.setFaults([{ kind: "latency", milliseconds: 300 }]);
    const started = performance.now();
    await client.call("GET", "metadata");
    expect(performance.now() - started).toBeGreaterThanOrEqual(299);
    client.emulator.setFaults([{ kind: "expired-token" }]);
    expect(await client.call("GET", "metadata")).toMatchObject({ status: 401, text: "" });
    client.emulator.setFaults([{ kind: "forbidden" }]);
    expect(await client.call("GET", "metadata")).toMatchObject({ status: 403, json: { error: { code: "Forbidden" } } });
    client.emulator.setFaults([{ kind: "expired-session" }]);
    expect((await client.execute("1")).json.error.code).toBe("SessionWithIdentifierNotFound");
  });

  it("can be set over HTTP, too, which rejects invalid ones", async () => {
    await using client = await Client.open();
    const url = new URL("/.emulator/faults", client.emulator.endpoint);
    const headers = { authorization: `Bearer ${client.emulator.token()}` };
    const put = (body: string) => fetch(url, { method: "PUT", body, headers });
    expect((await put('[{"kind":"forbidden","on":"metadata"}]')).status).toBe(204);
    expect((await client.call("GET", "metadata")).status).toBe(403);
    expect((await client.execute("1")).status).toBe(200);
    for (const wrong of [
      "{}",
      '[{"kind":"none"}]',
      '[{"kind":"drop","rate":"often"}]',
      '[{"kind":"latency"}]',
      "no JSON",
    ]) {
      expect({ wrong, status: (await put(wrong)).status }).toEqual({ wrong, status: 400 });
    }
    const sessions = await fetch(new URL("/.emulator/sessions", client.emulator.endpoint), { headers });
    expect(await sessions.json()).toEqual({ value: ["session-1"] });
  });
});
