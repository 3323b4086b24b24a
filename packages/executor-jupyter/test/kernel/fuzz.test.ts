import { parseJson } from "@fenced/core";
import { fc, fuzz, outcomeOf } from "@fenced/test-support/fuzz";
import { supportedKernelWebSocketProtocols } from "@jupyterlab/services/lib/kernel/messages.js";
import { serialize } from "@jupyterlab/services/lib/kernel/serialize.js";
import { expect, test } from "vitest";
import { createRequest, decodeMessage } from "../../src/kernel/wire-message.ts";

const parts: string = supportedKernelWebSocketProtocols.v1KernelWebsocketJupyterOrg;
const protocols = fc.constantFrom(parts, "");

/** A message that a server could send, as the bytes of either protocol. */
const message = fc
  .tuple(
    protocols,
    fc.dictionary(fc.string(), fc.jsonValue()),
    fc.array(fc.uint8Array({ maxLength: 9 }), { maxLength: 3 }),
  )
  .map(([protocol, content, buffers]) => {
    const sent = serialize(createRequest("execute_request", "shell", "session", content, buffers), protocol);
    const isBinary = typeof sent !== "string";
    return { protocol, content, isBinary, bytes: Buffer.from(isBinary ? new Uint8Array(sent) : Buffer.from(sent)) };
  });

test("a message is read as it was written, in both protocols", () => {
  fuzz(
    fc.property(message, ({ protocol, content, bytes, isBinary }) => {
      expect(decodeMessage(bytes, isBinary, protocol)?.content).toEqual(parseJson(JSON.stringify(content)));
    }),
  );
});

test("damaged messages are read, left out, or refused for their size", () => {
  const damage = fc.array(fc.tuple(fc.nat(), fc.nat(255)), { minLength: 1, maxLength: 4 });
  fuzz(
    fc.property(message, damage, fc.nat(), ({ protocol, bytes, isBinary }, changes, cut) => {
      for (const [at, byte] of changes) bytes[at % bytes.length] = byte;
      const piece = bytes.subarray(0, bytes.length - (cut % 3));
      const outcome = outcomeOf(() => typeof (decodeMessage(piece, isBinary, protocol)?.header.msg_type ?? "left out"));
      expect(["string", "JsonLimitError"]).toContain(outcome);
    }),
  );
});

test("parts that overlap, or lie outside of the message, are left out", () => {
  const json = Buffer.from(JSON.stringify(createRequest("execute_request", "shell", "session", {})));
  const sent = (...offsets: readonly number[]): Buffer => {
    const head = Buffer.alloc(4 * (offsets.length + 1));
    for (const [index, number] of [offsets.length, ...offsets].entries()) head.writeUInt32BE(number, 4 * index);
    return Buffer.concat([head, json]);
  };
  const end = 12 + json.length;
  expect(decodeMessage(sent(12, end), true, "")).toMatchObject({ channel: "shell" });
  const overlapping = Array.from({ length: 1000 }, () => 4 * 1002);
  for (const offsets of [
    [12, end + 1],
    [end, 12],
    [8, end],
    [12],
    [],
    [12, 2 ** 32 - 1],
    [4 * 1002, ...overlapping, 0],
  ]) {
    expect(decodeMessage(sent(...offsets), true, "")).toBeUndefined();
  }
});

test("other bytes are left out, or refused for their size", () => {
  fuzz(
    fc.property(fc.uint8Array({ maxLength: 200 }), fc.boolean(), protocols, (bytes, isBinary, protocol) => {
      const outcome = outcomeOf(() => decodeMessage(Buffer.from(bytes), isBinary, protocol));
      expect([undefined, "JsonLimitError"]).toContain(outcome);
    }),
  );
});
