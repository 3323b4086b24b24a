import { expect, test } from "vitest";
import { imageFromBytes } from "../../src/index.ts";

test("imageFromBytes encodes the bytes as base64", () => {
  expect(imageFromBytes(new Uint8Array([0, 255, 128]), "image/png")).toEqual({
    type: "image",
    url: "data:image/png;base64,AP+A",
  });
});

test("imageFromBytes encodes only the bytes of a view", () => {
  const view = new Uint8Array([1, 2, 3, 4]).subarray(1, 3);
  expect(imageFromBytes(view, "image/gif").url).toBe("data:image/gif;base64,AgM=");
});
