import { Sandbox } from "@e2b/code-interpreter";
import type { E2BHandlerOptions } from "../../src/index.ts";
import { startServer, type TestServer } from "./start-server.ts";

/** A server with a sandbox whose code interpreter is used. */
export interface InterpreterClient extends AsyncDisposable {
  readonly server: TestServer;
  readonly sandbox: Sandbox;
  /** What the code interpreter answers, as it is. */
  readonly request: (path: string, body?: unknown, headers?: Record<string, string>) => Promise<Response>;
  /** Breaks the connection of an execution once it has said something. */
  readonly leaveAfter: (said: string, body: unknown) => Promise<void>;
}

export async function startInterpreter(options: Partial<E2BHandlerOptions> = {}): Promise<InterpreterClient> {
  const server = await startServer(options);
  const sandbox = await Sandbox.create("base", { ...server.client, envs: { GIVEN: "to all" } });
  const request: InterpreterClient["request"] = (path, body, headers = {}) =>
    fetch(new URL(path, server.url), {
      method: body === undefined ? "GET" : "POST",
      headers: {
        "e2b-sandbox-id": sandbox.sandboxId,
        "e2b-sandbox-port": "49999",
        "e2b-traffic-access-token": sandbox.trafficAccessToken ?? "",
        ...headers,
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
  const leaveAfter = async (said: string, body: unknown): Promise<void> => {
    const { body: lines } = await request("/execute", body);
    if (!lines) throw new Error("there is no response");
    let heard = "";
    for await (const piece of lines) {
      heard += Buffer.from(piece).toString();
      if (heard.includes(said)) break;
    }
  };
  return { server, sandbox, request, leaveAfter, [Symbol.asyncDispose]: () => server[Symbol.asyncDispose]() };
}
