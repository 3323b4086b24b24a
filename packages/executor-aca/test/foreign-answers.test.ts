import { execFile } from "node:child_process";
import { once } from "node:events";
import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { promisify } from "node:util";
import { BackendUnavailableError } from "@fenced/core";
import { slow } from "@fenced/test-support";
import { bundledCommand } from "@fenced/test-support/bundled-command";
import { describe, expect, it, onTestFinished } from "vitest";
import { ACADynamicSessionsCodeExecutor, staticToken } from "../src/index.ts";

const token = "a-very-secret-token-of-some-length";

/** An executor whose pool is another server: a proxy, a captive portal, someone hostile. */
async function executorOf(answer: RequestListener): Promise<ACADynamicSessionsCodeExecutor> {
  const server = createServer(answer);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const executor = new ACADynamicSessionsCodeExecutor({
    poolManagementEndpoint: `http://127.0.0.1:${port}/pool`,
    credential: staticToken(token),
    poolType: "Shell",
    retryForMs: 0,
  });
  onTestFinished(async () => {
    await executor.stop().catch(() => {});
    server.closeAllConnections();
    server.close();
  });
  return executor;
}

/** A Shell pool whose file requests `files` answers. */
function shellPool(files: RequestListener): RequestListener {
  return (request, response) => {
    const { pathname } = new URL(request.url ?? "", "http://pool");
    if (pathname.endsWith("/metadata")) response.end(JSON.stringify({ runtimes: ["Shell"] }));
    else if (pathname.includes("/files")) files(request, response);
    else response.writeHead(204).end();
  };
}

async function errorOf(promise: Promise<unknown>): Promise<Error> {
  const error = await promise.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  expect(error).toSatisfy(BackendUnavailableError.isInstance);
  return error as Error;
}

/** Everything that a log could show of an error, its causes included. */
function dump(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const own = Object.getOwnPropertyNames(error).map((name) =>
    name === "cause" ? "" : String(Reflect.get(error, name)),
  );
  return `${own.join("\n")}\n${dump(error.cause ?? "")}`;
}

describe("an answer that is not the service's", () => {
  it.for([200, 401, 500])("does not leak the token into the error when it repeats it (%i)", async (status) => {
    const executor = await executorOf((request, response) => {
      // Also where the text is cut, so that it ends within the token.
      const text = `${"x".repeat(15_990)}${String(request.headers.authorization)}`;
      response.writeHead(status).end(status === 200 ? String(request.headers.authorization) : text);
    });
    const error = await errorOf(executor.start());
    expect(dump(error)).not.toContain(token.slice(0, 10));
    expect(error.message).toMatch(status === 200 ? /poolManagementEndpoint/ : /HTTP/);
  });

  it("is quoted in the error without control characters", async () => {
    const hostile = "\u001b]52;c;cm0gLXJm\u0007\u001b[2J\u202e";
    const executor = await executorOf((_, response) => {
      response.writeHead(400).end(JSON.stringify({ error: { code: `Bad${hostile}`, message: `no${hostile}pe` } }));
    });
    const { message } = await errorOf(executor.start());
    expect(message).toContain("nope");
    // oxlint-disable-next-line no-control-regex
    expect(message).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u202e]/);
  });

  it("is not read without limit", { timeout: 120_000 }, async () => {
    let sent = 0;
    const executor = await executorOf((_, response) => {
      const piece = Buffer.alloc(1_048_576, " ");
      const send = (): void => {
        if (response.destroyed) return;
        sent += piece.length;
        response.write(piece, send);
      };
      send();
    });
    expect((await errorOf(executor.start())).message).toMatch(/is longer than/);
    expect(sent).toBeLessThan(128 * 1_048_576);
  });

  it("takes no more memory because it has millions of numbers", { timeout: 120_000 }, async () => {
    const [node, ...words] = await bundledCommand(join(import.meta.dirname, "fixtures/reads-many-numbers.ts"));
    const { stdout } = await promisify(execFile)(node, ["--max-old-space-size=192", ...words]);
    expect(stdout).toContain("The session pool's answer does not match its API");
  });

  it("that asks to retry in a year is an error at once", async () => {
    const executor = await executorOf((_, response) => {
      response.writeHead(429, { "retry-after": "31536000" }).end();
    });
    expect((await errorOf(executor.start())).message).toMatch(/pool is full/);
  });

  it("is an error if every page of a list names another one", { ...slow, timeout: 120_000 }, async () => {
    const executor = await executorOf(
      shellPool((request, response) => {
        response.end(JSON.stringify({ value: [], nextLink: `http://elsewhere.test/?skip=${Math.random()}` }));
        expect(request.headers.host).toMatch(/^127\.0\.0\.1/);
      }),
    );
    expect((await errorOf(executor.files.list())).message).toMatch(/never ends/);
  });

  it("cannot list files outside the workspace", async () => {
    const names = ["../up", "..", "", "a/b", "good"];
    const executor = await executorOf(
      shellPool((_, response) => {
        response.end(JSON.stringify({ value: names.map((name) => ({ name, type: "file", sizeInBytes: 1 })) }));
      }),
    );
    expect(await executor.files.list()).toEqual([{ path: "good", size: 1 }]);
  });

  it("is an error if it says that a file was stored only in part", async () => {
    const executor = await executorOf(
      shellPool((request, response) => {
        request.resume().on("end", () => response.end(JSON.stringify({ name: "a.txt", sizeInBytes: 3 })));
      }),
    );
    const error = await errorOf(executor.files.write("a.txt", "content"));
    expect(error.message).toMatch(/stored 3 of the 7 bytes/);
    const code = "# filename: a.sh\necho ran";
    const block = executor.executeCodeBlocks([{ language: "bash", code }]);
    expect((await errorOf(block)).message).toMatch(/stored 3 of the/);
  });

  it("completes a file after a broken connection, unless the file has changed", async () => {
    const whole = Buffer.from(Array.from({ length: 200_000 }, (_, index) => index % 251));
    let requests = 0;
    let other = false;
    const executor = await executorOf(
      shellPool((_, response) => {
        requests += 1;
        const content = other && requests > 1 ? Buffer.concat([Buffer.from("other"), whole.subarray(5)]) : whole;
        response.writeHead(200, { "content-length": content.length });
        if (requests > 1) response.end(content);
        else response.write(content.subarray(0, 100_000), () => response.destroy());
      }),
    );
    expect(Buffer.from(await executor.files.read("a.bin"))).toEqual(whole);
    expect(requests).toBe(2);
    [requests, other] = [0, true];
    expect((await errorOf(executor.files.read("a.bin"))).message).toMatch(/changed while it was downloaded/);
  });
});
