import { type ApproveHostCall, describeHostCall, type HostCall, type HostCallApproval } from "@fenced/core";
import { longestTimer, untilAborted } from "@fenced/core/abort";
import type { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import type { RequestHandlerExtra } from "@modelcontextprotocol/sdk/shared/protocol.js";
import { ElicitResultSchema, type ServerNotification, type ServerRequest } from "@modelcontextprotocol/sdk/types.js";

const cannotAsk =
  "The user's MCP client does not support elicitation, so it cannot ask for approval. " +
  "To allow such calls without asking, start the server with --approve none.";

type Extra = Pick<RequestHandlerExtra<ServerRequest, ServerNotification>, "sendRequest">;

/** Asks the client's user about calls, one at a time, through MCP elicitation. Remembers approvals until the session ends. */
export class AskClient {
  readonly #server: McpServer;
  readonly #allowed = new Set<string>();
  #turn: Promise<unknown> = Promise.resolve();

  constructor(server: McpServer) {
    this.#server = server;
  }

  /** @param extra - of the request that runs the code: questions go to the same client as its response. */
  approver(extra: Extra): ApproveHostCall {
    return async (call) => {
      if (!call.needsApproval || this.#allowed.has(call.name)) return { approved: true };
      if (this.#server.server.getClientCapabilities()?.elicitation?.form === undefined) {
        return { approved: false, reason: cannotAsk };
      }
      const asked = this.#turn.then(() => this.#ask(call, extra));
      this.#turn = asked.catch(() => {});
      return untilAborted(asked, call.signal);
    };
  }

  async #ask(call: HostCall, { sendRequest }: Extra): Promise<HostCallApproval> {
    const { name, signal } = call;
    signal.throwIfAborted();
    // An earlier answer allowed it.
    if (this.#allowed.has(name)) return { approved: true };
    const params = {
      message: `The running code wants to call ${describeHostCall(call)}`,
      requestedSchema: formOf(name),
    };
    const request = { method: "elicitation/create" as const, params };
    const { action, content } = await sendRequest(request, ElicitResultSchema, { signal, timeout: longestTimer });
    if (action !== "accept") return { approved: false, reason: "The user refused the call. Ask what they want." };
    if (content?.["allow"] === "session") this.#allowed.add(name);
    const approved = content?.["allow"] === "session" || content?.["allow"] === "once";
    return { approved, ...(approved ? {} : { reason: "The user gave no clear answer." }) };
  }
}

function formOf(name: string) {
  return {
    type: "object" as const,
    properties: {
      allow: {
        type: "string" as const,
        title: "Allow",
        enum: ["once", "session"],
        // Clients of protocol version 2025-06-18 support no other way to label choices.
        enumNames: ["this call", `all calls of ${name} in this session`],
        default: "once",
      },
    },
    required: ["allow"],
  };
}
