import { needs } from "@fenced/test-support";
import { describe, expect, it } from "vitest";
import { Client, current } from "./client.ts";
import { exchange } from "./raw-request.ts";

/** An unsigned web token for the right audience, which anyone can write. */
function forgedToken(): string {
  const encode = (part: object): string => Buffer.from(JSON.stringify(part)).toString("base64url");
  const claims = { aud: "https://dynamicsessions.io", exp: Math.floor(Date.now() / 1000) + 7200 };
  return `${encode({ alg: "none", typ: "JWT" })}.${encode(claims)}.`;
}

async function statusOf(client: Client, headers: Readonly<Record<string, string>>): Promise<string> {
  const { pathname, host } = new URL(client.emulator.endpoint);
  const all = { host, authorization: `Bearer ${client.emulator.token()}`, connection: "close", ...headers };
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`);
  const target = `${pathname}/metadata?api-version=${current}&identifier=session-1`;
  const answer = await exchange(client.emulator, `GET ${target} HTTP/1.1\r\n${lines.join("")}\r\n`);
  return answer.slice(9, 12);
}

describe("access", needs("python3"), () => {
  it("is denied to tokens that the emulator did not sign", async () => {
    await using client = await Client.open();
    const genuine = client.emulator.token();
    const otherClaims = `${genuine.split(".")[0] ?? ""}.${forgedToken().split(".")[1] ?? ""}.${genuine.split(".")[2] ?? ""}`;
    await using other = await Client.open();
    for (const token of [forgedToken(), otherClaims, other.emulator.token(), `${genuine}x`]) {
      const reply = await client.call("GET", "metadata", { headers: { authorization: `Bearer ${token}` } });
      expect(reply).toMatchObject({ status: 401, text: "" });
    }
    expect((await client.call("GET", "metadata")).status).toBe(200);
  });

  it("is denied to requests for other host names, as in DNS rebinding", async () => {
    await using client = await Client.open();
    const { port } = new URL(client.emulator.endpoint);
    for (const host of ["evil.example", `evil.example:${port}`, "127.0.0.1.evil.example", "user@localhost", "[", ""]) {
      expect([host, await statusOf(client, { host })]).toEqual([host, "403"]);
    }
    for (const host of ["localhost", `LOCALHOST:${port}`, "127.0.0.1", `[::1]:${port}`]) {
      expect([host, await statusOf(client, { host })]).toEqual([host, "200"]);
    }
  });

  it("is denied to pages of other sites", async () => {
    await using client = await Client.open();
    for (const origin of ["https://evil.example", "null", "http://localhost.evil.example"]) {
      expect([origin, await statusOf(client, { origin })]).toEqual([origin, "403"]);
    }
    expect(await statusOf(client, { origin: "http://localhost:3000" })).toBe("200");
  });

  it("is granted to the names in allowedHosts", async () => {
    await using client = await Client.open({ allowedHosts: ["pool.test"] });
    expect(await statusOf(client, { host: "pool.test:8080", origin: "http://pool.test" })).toBe("200");
    expect(await statusOf(client, { host: "other.test" })).toBe("403");
  });

  it("to the emulator's own API requires the token, too", async () => {
    await using client = await Client.open();
    const own = (path: string): string => new URL(`/.emulator/${path}`, client.emulator.endpoint).href;
    expect((await fetch(own("sessions"))).status).toBe(401);
    const body = '[{"kind":"forbidden"}]';
    expect((await fetch(own("faults"), { method: "PUT", body })).status).toBe(401);
    const headers = { authorization: `Bearer ${client.emulator.token()}` };
    expect((await fetch(own("sessions"), { headers })).status).toBe(200);
    expect((await client.call("GET", "metadata")).status).toBe(200);
  });
});
