import { describe, expect, it } from "vitest";
import { seatbeltProfile } from "../../src/sandbox/seatbelt-profile.ts";

// These check only the text, since they do not run on macOS.
describe("the profile for macOS", () => {
  const rules = { readable: ["/Users/me/data"], writable: ["/private/var/folders/x/work"], network: "none" } as const;
  const profile = seatbeltProfile(rules);

  /** The paths on which an operation is allowed. */
  const allowed = (operation: string): string[] =>
    [...profile.matchAll(new RegExp(`^\\(allow ${operation.replace("*", "\\*")}\\n((?: {2}.*\\n?)+)`, "gm"))].flatMap(
      ([, places = ""]) => [...places.matchAll(/\(subpath "([^"]*)"\)/g)].map(([, place = ""]) => place),
    );

  it("forbids everything first", () => {
    expect(profile.split("\n").slice(0, 2)).toEqual(["(version 1)", "(deny default)"]);
  });

  it("shows the system and shared paths, but neither homes nor other temporary files", () => {
    const read = allowed("file-read*");
    expect(read).toEqual(expect.arrayContaining(["/usr", "/System", "/Users/me/data", "/private/var/folders/x/work"]));
    for (const place of [
      "/",
      "/Users",
      "/Users/me",
      "/private",
      "/private/tmp",
      "/private/var",
      "/private/etc",
      "/Library",
      "/dev",
    ]) {
      expect(read).not.toContain(place);
    }
  });

  it("lets programs change only writable paths, apart from devices", () => {
    const changed = allowed("file-write*").filter((place) => !place.startsWith("/dev/"));
    expect(changed).toEqual(["/private/var/folders/x/work"]);
  });

  it("allows the network only if it is open", () => {
    expect(profile).toContain("(deny network*)");
    expect(profile).not.toContain("(allow network");
    expect(seatbeltProfile({ ...rules, network: "open" })).toContain("(allow network*)");
  });

  it("cannot be escaped with a file name", () => {
    const name = '/Users/me/a")) (allow default) (deny x "\\';
    const quoted = String.raw`(subpath "/Users/me/a\")) (allow default) (deny x \"\\")`;
    expect(seatbeltProfile({ ...rules, writable: [name] })).toContain(quoted);
  });

  it("has balanced parentheses", () => {
    const bare = profile.replaceAll(/"(?:[^"\\]|\\.)*"/g, "");
    expect(bare.split("(").length).toBe(bare.split(")").length);
  });
});
