import { describe, expect, it } from "vitest";
import { mimeBundle } from "../../src/displays/mime-bundle.ts";

describe("mimeBundle", () => {
  it.each<[string, string, Uint8Array | string]>([
    ["base64", "AQID", Uint8Array.of(1, 2, 3)],
    ["padded base64", "AQI=", Uint8Array.of(1, 2)],
    ["base64 of several lines", "AQ\nID\nBA==\n", Uint8Array.of(1, 2, 3, 4)],
    ["nothing", "", new Uint8Array()],
    ["text with other characters", "AQ-D", "AQ-D"],
    ["text with a padding that is too long", "A===", "A==="],
    ["text with a padding in the middle", "AQ= ID=", "AQ= ID="],
  ])("takes binary content from %s", (_, given, content) => {
    expect(mimeBundle({ "image/png": given })).toEqual({ "image/png": content });
  });

  it.each([" ", "\n", "A ", "=", "A="])(
    "reads 1,000,000 times %j in time that grows with its length alone",
    (piece) => {
      const text = `${piece.repeat(1_000_000)}!`;
      expect(mimeBundle({ "image/png": text })).toEqual({ "image/png": text });
    },
  );
});
