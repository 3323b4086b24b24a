import {
  type AgentMessage,
  codeApprovalRequestEvent,
  codeExecutionEvent,
  codeGenerationEvent,
  codeOutputEvent,
  handoffMessage,
  memoryQueryEvent,
  multiModalMessage,
  selectorEvent,
  selectSpeakerEvent,
  stopMessage,
  streamingChunkEvent,
  structuredMessage,
  textMessage,
  thoughtEvent,
  toolCallExecutionEvent,
  toolCallRequestEvent,
  toolCallSummaryMessage,
  userInputRequestedEvent,
} from "../../src/index.ts";
import { codeResult } from "./scripted-executor.ts";

const source = "a";
const toolCalls = [{ id: "1", name: "add", arguments: "{}" }];
const results = [{ callId: "1", name: "add", content: "3", isError: false }];
const displays = [
  {
    data: { "image/png": new Uint8Array([1, 2, 3]), "text/plain": "<Figure>", "application/json": { a: [1] } },
    files: ["/a.png"],
  },
];

const refused = { allowed: false, protocol: "connect", host: "a.example", port: 443, reason: "not listed" } as const;

/** One message or event of each type. */
export const everyMessage: readonly AgentMessage[] = [
  memoryQueryEvent({ source, content: [{ content: "known", mimeType: "text/markdown", metadata: { a: 1 } }] }),
  textMessage({ source, content: "hello", metadata: { exitCode: "0" } }),
  multiModalMessage({
    source,
    content: [
      { type: "text", text: "look" },
      { type: "image", url: "data:image/png;base64,AA", path: "/a.png" },
    ],
  }),
  stopMessage({ source, content: "stop" }),
  handoffMessage({ source, content: "yours", target: "b", context: [{ role: "assistant", content: toolCalls }] }),
  structuredMessage({ source, content: { answer: [42, null] } }),
  toolCallSummaryMessage({ source, content: "3", toolCalls, results }),
  thoughtEvent({ source, content: "hm", modelsUsage: { promptTokens: 1, completionTokens: 2 } }),
  toolCallRequestEvent({ source, content: toolCalls }),
  toolCallExecutionEvent({ source, content: results }),
  codeGenerationEvent({ source, content: "code", codeBlocks: [{ language: "python", code: "x" }], retryAttempt: 1 }),
  codeExecutionEvent({
    source,
    result: codeResult({ output: "7\n", displays, codeFile: "/a.py", network: [refused] }),
    retryAttempt: 1,
  }),
  codeOutputEvent({ source, index: 0, stream: "stdout", text: "7\n" }),
  streamingChunkEvent({ source, content: "he", fullMessageId: "x" }),
  codeApprovalRequestEvent({ source, blocks: [{ language: "python", code: "x" }] }),
  userInputRequestedEvent({ source }),
  selectSpeakerEvent({ source, content: ["a", "b"] }),
  selectorEvent({ source, content: "a speaks" }),
];
