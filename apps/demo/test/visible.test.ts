import { showHidden } from "@fenced/core";
import { expect, it } from "vitest";
import { z } from "zod";

const isFunction = z.custom<(code: string) => string>((value) => typeof value === "function");
/** A script of the page, which has no types. */
const script: unknown = await import(new URL("../page/parts.js", import.meta.url).href);
const { visible } = z.object({ visible: isFunction }).parse(script);

it("the page shows the same characters of code that waits for approval as approval in a terminal", () => {
  const different: string[] = [];
  for (let point = 0; point <= 0x10_ffff; point += 1) {
    const text = `a${String.fromCodePoint(point)}b`;
    if (visible(text) !== showHidden(text)) different.push(point.toString(16));
  }
  expect(different).toEqual([]);
  expect(visible("pay\ufe00 \u200d\u3164\u202e\u{e0041}")).toBe(
    String.raw`pay\u{fe00} \u{200d}\u{3164}\u{202e}\u{e0041}`,
  );
});
