import { describe, expect, it } from "vitest";
import { bar, pullProgress } from "../src/pull-progress.ts";

function show(isTTY: boolean): string {
  const written: string[] = [];
  const told = pullProgress({ isTTY, write: (text) => written.push(text) });
  const image = "python:3-slim";
  told({ image, status: "Pulling fs layer", layer: "a" });
  told({ image, status: "Downloading", layer: "a", current: 1_000_000, total: 2_000_000 });
  told({ image, status: "Downloading", layer: "b", current: 0, total: 2_000_000 });
  told({ image, status: "Downloading", layer: "b", current: 2_000_000, total: 2_000_000 });
  told({ image, status: "Downloading", layer: "a", current: 2_000_000, total: 2_000_000 });
  told({ image, status: "Extracting", layer: "a", current: 1, total: 2_000_000 });
  return written.join("");
}

describe("the progress of a download", () => {
  it("is shown as a bar", () => {
    expect(bar(0, 10_000_000)).toContain(`${".".repeat(30)} 0.0 of 10.0 MB`);
    expect(bar(5_000_000, 10_000_000)).toContain(`${"#".repeat(15)}${".".repeat(15)} 5.0 of 10.0 MB`);
  });

  it("covers all layers on a terminal, and ends its line", () => {
    const lines = show(true).split(/[\r\n]+/);
    expect(lines[0]).toBe("Downloading the image python:3-slim, once.");
    expect(lines.slice(1).map((line) => /[\d.]+ of [\d.]+/.exec(line)?.[0])).toEqual([
      "1.0 of 2.0",
      "1.0 of 4.0",
      "3.0 of 4.0",
      "4.0 of 4.0",
      undefined,
    ]);
  });

  it("is a single line without a terminal", () => {
    expect(show(false)).toBe("Downloading the image python:3-slim, once.\n");
  });
});
