import { InvalidInputError } from "@fenced/core";
import { describe, expect, it } from "vitest";
import { programError } from "../../src/host-calls/program-error.ts";

describe("the error that a program sees", () => {
  it.each([
    ["ENOENT: no such file or directory, open '/home/me/key.txt'", "ENOENT: no such file or directory, open '<path>'"],
    ["in file:///srv/app/main.js:10:3 (/srv/app/x.js:1:2)", "in <path> (<path>)"],
    [String.raw`cannot read C:\Users\me\key.txt`, "cannot read <path>"],
    [String.raw`cannot read \\server\share\key`, "cannot read <path>"],
    ["ENOENT, open '/home/a user/(old) [x]/key.txt'", "ENOENT, open '<path>'"],
    ["cannot read /home/a user/My (old) files [1]/key.txt now", "cannot read <path> now"],
    [String.raw`cannot read C:\Program Files (x86)\App\key.txt`, "cannot read <path>"],
    ["failed\n    at run (/srv/app/main.js:1:2)\n    at async main\nlater", "failed\nlater"],
    [
      "GET https://api.example.com/v1/users failed with 500 and/or 1/2",
      "GET https://api.example.com/v1/users failed with 500 and/or 1/2",
    ],
  ])("shows %j as %j", (message, expected) => {
    expect(programError(new TypeError(message))).toEqual({ name: "TypeError", message: expected });
  });

  it("names no path that the error itself has, whatever its characters", () => {
    const path = "/srv/it's; a <strange> path/x, y|z";
    const error = Object.assign(new Error(`EACCES: permission denied, open ${path}`), { path });
    expect(programError(error).message).toBe("EACCES: permission denied, open <path>");
  });

  it.each(["/a ", "/a(", "/ a b c d e f", "'/a", "C:\\a "])("is made quickly from a megabyte of %j", (piece) => {
    const text = piece.repeat(Math.ceil(1_000_000 / piece.length));
    expect(programError(new Error(text)).message.length).toBeLessThanOrEqual(4001);
  });

  it("has a bounded message and a valid name", () => {
    const long = programError(Object.assign(new Error("x".repeat(10_000)), { name: "a b\nc" }));
    expect(long.name).toBe("Error");
    expect(long.message).toHaveLength(4001);
  });

  it.each(["\n", "\r", "\u2028", " ", "\t\n"])("is made quickly from a megabyte of white space: %j", (space) => {
    expect(programError(new Error(`${space.repeat(1_000_000)}x`)).message).toHaveLength(4001);
  });

  it("can be made from any thrown value", () => {
    expect(programError("plain")).toEqual({ name: "Error", message: "plain" });
    const refuse = (): never => {
      throw new Error("no");
    };
    const traps = new Proxy({}, { get: refuse });
    for (const thrown of [undefined, null, 7, {}, Object.create(null), traps]) {
      expect(programError(thrown)).toEqual({ name: "Error", message: "" });
    }
    expect(programError(new InvalidInputError("Wrong", { remedy: "Mend it." })).name).toBe("InvalidInputError");
  });
});
