import { expect, test } from "vitest";
import { matchesPath } from "../../src/network/request-path.ts";

test.each([
  ["/a/**", ["/a", "/a/", "/a/b", "/a/b/c"], ["/", "/ab", "/b/a", "/A/b"]],
  ["/a/*", ["/a/", "/a/b"], ["/a", "/a/b/c"]],
  ["/a/*.json", ["/a/.json", "/a/x.json", "/a/x.json.json"], ["/a/x.jsonl", "/a/b/x.json", "/a/x%2ejson"]],
  ["/**/c/*-*", ["/c/-", "/a/b/c/x-y", "/c/c/c/--"], ["/c/x", "/a/c/d/x-y"]],
  ["/**", ["/", "/a/b"], []],
  ["/", ["/"], ["/a"]],
])("%s matches part by part", (pattern, paths, others) => {
  for (const path of paths) expect([path, matchesPath(pattern, path)]).toEqual([path, true]);
  for (const path of others) expect([path, matchesPath(pattern, path)]).toEqual([path, false]);
});

test("a long path that nearly matches takes as many steps as both are long", () => {
  const path = `/${"a/".repeat(4000)}b`;
  expect(matchesPath("/**/a/**/a/**/a/**/c", path)).toBe(false);
  expect(matchesPath(`/${"*a".repeat(20)}*b`, `/${"a".repeat(8000)}c`)).toBe(false);
});
