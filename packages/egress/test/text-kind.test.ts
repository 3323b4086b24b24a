import { describe, expect, test } from "vitest";
import { textKind } from "../src/credentials/text-kind.ts";

describe("textKind", () => {
  test.each([
    ["no encoding", [], "json"],
    ["an empty encoding", ["Content-Encoding", " "], "json"],
    ["the encoding that changes nothing", ["Content-Encoding", " Identity\t"], "json"],
    ["an encoding", ["Content-Encoding", "gzip"], undefined],
    ["an encoding besides identity", ["Content-Encoding", "identity", "content-encoding", "br"], undefined],
  ])("knows a body with %s", (_, headers, kind) => {
    expect(textKind([...headers, "Content-Type", "application/json"])).toBe(kind);
  });

  test("reads an encoding of 1,000,000 no-break spaces in time that grows with its length alone", () => {
    expect(textKind(["Content-Encoding", `${"\u{A0}".repeat(1_000_000)}x`])).toBeUndefined();
  });
});
