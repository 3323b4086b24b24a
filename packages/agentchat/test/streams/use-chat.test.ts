import { once } from "node:events";
import { createServer } from "node:http";
import { Readable } from "node:stream";
import { setImmediate } from "node:timers/promises";
import { createUIMessageStreamResponse, DefaultChatTransport, type UIMessage } from "ai-7";
import { Window } from "happy-dom";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { toUIMessageStream } from "../../src/index.ts";
import { busyChat } from "../support/busy-chat.ts";

/** Starts a server that answers each request with the run of a chat, as `useChat` expects. Returns its URL. */
async function serveChat(): Promise<string> {
  const server = createServer((_, response) => {
    const stream = toUIMessageStream(busyChat().runStream({ task: "go", outputTaskMessages: false }));
    const { body, headers, status } = createUIMessageStreamResponse({ stream });
    response.writeHead(status, Object.fromEntries(headers));
    if (body) Readable.fromWeb(body).pipe(response);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("the server has no port");
  return `http://127.0.0.1:${address.port}/`;
}

describe("useChat of @ai-sdk/react", () => {
  it("shows a run in a page: texts, tools, pictures, live output and the result", async () => {
    const api = await serveChat();
    const window = new Window();
    onTestFinished(() => window.happyDOM.close());
    // Runs after React has been unmounted: it needs the globals until it has removed everything from the page.
    onTestFinished(() => void vi.unstubAllGlobals());
    vi.stubGlobal("window", window);
    vi.stubGlobal("document", window.document);
    vi.stubGlobal("navigator", window.navigator);
    // React looks for the page when it is imported.
    const { createElement } = await import("react");
    const { flushSync } = await import("react-dom");
    const { createRoot } = await import("react-dom/client");
    const { useChat } = await import("@ai-sdk/react");
    const live: unknown[] = [];
    let shown: readonly UIMessage[] = [];

    function Chat(): ReturnType<typeof createElement> {
      const { messages, sendMessage, status, error } = useChat({
        transport: new DefaultChatTransport({ api }),
        onData: ({ type, data }) => {
          if (type === "data-CodeOutputEvent") live.push(data);
        },
      });
      shown = messages;
      const lines = messages.flatMap(({ id, parts }) =>
        parts.map((part, index) =>
          createElement("li", { key: `${id}-${index}` }, part.type === "text" ? part.text : part.type),
        ),
      );
      const send = (): void => void sendMessage({ text: "What is it?" });
      return createElement(
        "main",
        { "data-status": status },
        createElement("button", { onClick: send }),
        createElement("output", null, error?.message),
        ...lines,
      );
    }

    const place = window.document.createElement("div");
    window.document.body.append(place);
    const root = createRoot(place);
    onTestFinished(async () => {
      flushSync(() => root.unmount());
      // Lets the work finish that React has queued, and any work queued by that.
      for (let turn = 0; turn < 10; turn += 1) await setImmediate();
    });
    root.render(createElement(Chat));
    const { button } = await vi.waitUntil(() => {
      const found = place.querySelector("button");
      return found && { button: found };
    }, 120_000);
    button.click();
    await vi.waitUntil(() => place.querySelector("main")?.dataset["status"] === "ready" && shown.length === 2, 60_000);

    expect(place.querySelector("output")?.textContent).toBe("");
    const items = [...place.querySelectorAll("li")].map(({ textContent }) => textContent);
    expect(items[0]).toBe("What is it?");
    expect(items).toEqual(
      expect.arrayContaining(["It is 2.", "Look:", "dynamic-tool", "reasoning", "file", "data-result"]),
    );
    expect(live).toEqual([expect.objectContaining({ text: "7\n", stream: "stdout" })]);
    expect(shown.map(({ role }) => role)).toEqual(["user", "assistant"]);
    const parts = shown[1]?.parts ?? [];
    expect(parts.filter((part) => part.type === "text").every(({ state }) => state === "done")).toBe(true);
  });
});
