import path from "node:path";
import { InvalidInputError } from "@fenced/core";
import { absolutePaths } from "@fenced/executor-kit";
import { describe, expect, it } from "vitest";

describe("absolutePaths", () => {
  it("resolves paths and lists of paths, and leaves other options as they are", () => {
    const options = { workDir: "work", readable: ["notes", "./~/a"], name: "~" };
    expect(
      absolutePaths<typeof options & { readonly outputDir?: string }>(options, ["workDir", "readable", "outputDir"]),
    ).toEqual({
      workDir: path.resolve("work"),
      readable: [path.resolve("notes"), path.resolve("./~/a")],
      name: "~",
    });
  });

  it.each(["~", "~/work", "~ada/work", "~ada"])("says that only a shell expands %j", (workDir) => {
    expect(() => absolutePaths({ workDir }, ["workDir"])).toThrow(
      expect.objectContaining({
        option: "workDir",
        message: expect.stringMatching(/`workDir` is "~.*os\.homedir\(\)/),
      }),
    );
  });

  it("names the path that has a NUL character", () => {
    const options = { readable: ["/etc", "/a\0b"] };
    expect(() => absolutePaths(options, ["readable"])).toThrow(InvalidInputError);
    expect(() => absolutePaths(options, ["readable"])).toThrow(
      /`readable\[1\]` contains a NUL character.*"\/a\\u0000b"/,
    );
  });
});
