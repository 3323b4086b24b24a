import { describe, expect, it } from "vitest";
import {
  BackendUnavailableError,
  type CodeResult,
  ExecutorStoppedError,
  FileNotFoundError,
  InvalidInputError,
  makeBlockResult,
  makeCodeResult,
  ModelClientError,
  QuotaExceededError,
  SessionInUseError,
  WorkspacePathError,
} from "../../src/index.ts";
import { fromJson, httpStatus, toJson } from "../../src/web/index.ts";
import { codeResult } from "../support/code-result.ts";

const remedy = "Do something else.";
const bytes = Uint8Array.from({ length: 70_000 }, (_, index) => index % 256);
const block = { exitCode: 0, durationMs: 1, timedOut: false, truncated: false };

/** Two blocks that printed to both streams, with a picture and paths of the host. */
const result: CodeResult = codeResult({
  output: "a1\nerr😀\nb\n",
  stdout: "a1\nb\n",
  stderr: "err😀\n",
  codeFile: "/home/me/work/code.py",
  displays: [
    {
      data: { "image/png": bytes, "text/plain": "<Figure>", "application/json": { a: [1] } },
      files: ["/home/me/plots/1.png"],
    },
  ],
  blocks: [
    { ...block, output: "a1\nerr😀\n", stdout: "a1\n", stderr: "err😀\n" },
    { ...block, output: "b\n", stdout: "b\n", stderr: "" },
  ],
});

function overTheWire(value: object): unknown {
  const text = JSON.stringify(toJson(value));
  return fromJson(JSON.parse(text));
}

describe("toJson of a result", () => {
  it("writes bytes as base64", () => {
    const [display] = toJson(result).displays;
    expect(display?.data["image/png"]).toBe(Buffer.from(bytes).toString("base64"));
    expect(display?.base64).toEqual(["image/png"]);
  });

  it("omits the host's paths unless hostPaths is set", () => {
    expect(JSON.stringify(toJson(result))).not.toContain("/home/me");
    const kept = toJson(result, { hostPaths: true });
    expect(kept.codeFile).toBe("/home/me/work/code.py");
    expect(kept.displays[0]?.files).toEqual(["/home/me/plots/1.png"]);
    expect(JSON.stringify(toJson(kept))).not.toContain("/home/me");
  });

  it("stores each character of output once", () => {
    const output = "x".repeat(100_000);
    const blocks = [makeBlockResult({ ...block, output, layout: { parts: [60_000, -40_000] } })];
    const one = makeCodeResult({ ...block, displays: [], stateLost: false, blocks });
    expect(JSON.stringify(toJson(one)).length).toBeLessThan(output.length + 1000);
    expect(overTheWire(one)).toEqual({ ...one });
    expect(overTheWire(one)).toMatchObject({
      stderr: output.slice(60_000),
      blocks: [{ stdout: output.slice(40_000) }],
    });
    const end = { type: "block-end", index: 0, result: blocks[0] };
    expect(overTheWire(end)).toMatchObject({ result: { output, stderr: output.slice(60_000) } });
  });

  it("is restored completely, with the texts of its blocks", () => {
    const { codeFile: _, ...visible } = result;
    const displays = visible.displays.map((display) => ({ ...display, files: [] }));
    expect(overTheWire(result)).toEqual({ ...visible, displays });
  });

  it("replaces display data that is not JSON, and keeps a key named __proto__", () => {
    const data = Object.fromEntries([
      ["__proto__", "own"],
      ["application/json", Number.NaN],
    ]);
    const [display] = toJson(codeResult({ displays: [{ data, files: [] }] })).displays;
    expect(JSON.stringify(display?.data)).toBe(
      '{"__proto__":"own","application/json":"[left out: not JSON, or nested more than 500 levels deep]"}',
    );
  });
});

describe("toJson of an event", () => {
  it("survives a round trip through JSON", () => {
    const display = { data: { "image/png": bytes }, files: [] };
    for (const event of [
      { type: "stdout", index: 0, text: "hi\n" },
      { type: "display", index: 1, display },
      { type: "block-end", index: 0, result: result.blocks[0] },
      { type: "result", result: codeResult({ output: "hi\n" }) },
    ]) {
      expect(overTheWire(event)).toEqual(event);
    }
  });

  it("omits the host's paths from what agents and teams yield", () => {
    const message = {
      type: "MultiModalMessage",
      content: [
        { type: "text", text: "look" },
        { type: "image", url: "data:image/png;base64,AA", path: "/home/me/1.png" },
      ],
    };
    const event = { type: "CodeExecutionEvent", result: toJson(result, { hostPaths: true }), retryAttempt: 0 };
    const task = { messages: [message, event], stopReason: "done" };
    const response = { chatMessage: message, innerMessages: [event] };
    expect(JSON.stringify([task, response])).toContain("/home/me");
    expect(JSON.stringify([toJson(task), toJson(response)])).not.toContain("/home/me");
    expect(toJson(message)).toEqual({
      type: "MultiModalMessage",
      content: [message.content[0], { type: "image", url: "data:image/png;base64,AA" }],
    });
  });
});

describe("errors over the wire", () => {
  const errors = [
    [new InvalidInputError("No blocks", { remedy }), 400],
    [new WorkspacePathError("../x leads out", { remedy }), 400],
    [new FileNotFoundError("There is no a.txt", { remedy }), 404],
    [new ExecutorStoppedError("It was stopped", { remedy }), 410],
    [new QuotaExceededError("3 runs wait already", { remedy }), 429],
    [new SessionInUseError("another process has it", { remedy }), 409],
    [new BackendUnavailableError("The daemon is gone", { remedy, cause: new Error("secret") }), 503],
    [new ModelClientError("The model failed", { remedy }), 500],
  ] as const;

  it.each(errors)("%s keeps its class and has its HTTP status", (error, status) => {
    expect(httpStatus(error)).toBe(status);
    const back = overTheWire(error);
    expect(back).toBeInstanceOf(error.constructor);
    expect(back).toMatchObject({ name: error.name, message: error.message, remedy, code: error.code });
    expect(JSON.stringify(toJson(error))).not.toContain("secret");
  });

  it("reveal nothing about other errors but their kind", () => {
    expect(toJson(new TypeError("read /etc/passwd"))).toMatchObject({ code: "internal", message: /server's log/ });
    expect(JSON.stringify(toJson(new TypeError("read /etc/passwd")))).not.toContain("passwd");
    expect(toJson(new DOMException("x", "AbortError"))).toMatchObject({ code: "aborted" });
    expect(toJson(new DOMException("x", "TimeoutError"))).toMatchObject({ code: "timeout" });
    expect(overTheWire(new DOMException("x", "AbortError"))).toMatchObject({ name: "AbortError" });
    expect([httpStatus(new TypeError("x")), httpStatus("x"), httpStatus(undefined)]).toEqual([500, 500, 500]);
  });
});

describe("fromJson", () => {
  it("returns unknown values unchanged, and rejects a result with missing parts", () => {
    const message = { type: "TextMessage", content: "hello" };
    expect(fromJson(message)).toBe(message);
    expect(fromJson("text")).toBe("text");
    const broken: unknown = { exitCode: 0, displays: [{}], blocks: [{}] };
    expect(() => fromJson(broken)).toThrow(InvalidInputError);
  });
});
