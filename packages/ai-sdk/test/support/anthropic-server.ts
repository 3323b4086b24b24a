import { once } from "node:events";
import { createServer } from "node:http";
import { json } from "node:stream/consumers";

export interface AnthropicServer extends AsyncDisposable {
  readonly baseURL: string;
  readonly requests: readonly unknown[];
}

/** Speaks just enough of Anthropic's messages protocol to answer each request with one list of content blocks. */
export async function startAnthropicServer(answers: readonly (readonly object[])[]): Promise<AnthropicServer> {
  const requests: unknown[] = [];
  const server = createServer((request, response) => {
    void json(request).then((body) => {
      const content = answers[requests.push(body) - 1] ?? [];
      const message = {
        id: "m",
        type: "message",
        role: "assistant",
        model: "claude",
        content,
        stop_reason: "end_turn",
      };
      response.setHeader("content-type", "application/json");
      response.end(JSON.stringify({ ...message, usage: { input_tokens: 1, output_tokens: 1 } }));
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("the server has no port");
  return {
    baseURL: `http://127.0.0.1:${address.port}/v1`,
    requests,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}
