import { type CodeExecutor, executeWithProgress, InvalidInputError } from "@fenced/core";
import { describe, expect, it } from "vitest";

const blocks = [{ language: "python", code: "print(1)" }];
/** Written for the first version of the contract. */
const older: Partial<CodeExecutor> = {
  executeCodeBlocks: () => Promise.reject(new Error("must not be called")),
  streamCodeBlocks: () => {
    throw new Error("must not be called");
  },
};
const unused = (): never => {
  throw new Error("must not be called");
};
const executor = { ...older, submit: unused, run: unused, runs: unused };

describe("executeWithProgress in JavaScript", () => {
  it.each<[unknown, unknown, string]>([
    [executor, undefined, '"onProgress" is missing. It must be a function.'],
    [executor, { onProgress: "log" }, '"onProgress" is not valid. It must be a function.'],
    [
      executor,
      { onProgress() {}, interval: 5 },
      'unknown option "interval". Did you mean "intervalMs", in milliseconds?',
    ],
    [executor, { onProgress() {}, timeout: 5 }, 'unknown option "timeout". Did you mean "timeoutMs", in milliseconds?'],
    [executor, { onProgress() {}, timeoutMs: "5" }, '"timeoutMs" is not valid.'],
    [executor, { onProgress() {}, maxCharacters: -1 }, '"maxCharacters" is -1.'],
    [{}, { onProgress() {} }, '"executor" is an object. It must be a code executor.'],
    [older, { onProgress() {} }, "but lacks submit(), run(), runs(). Update the package that it is from"],
  ])("rejects %o with %o before anything runs", async (given, options, message) => {
    const run = async (): Promise<unknown> => Reflect.apply(executeWithProgress, undefined, [given, blocks, options]);
    await expect(run()).rejects.toThrow(InvalidInputError);
    await expect(run()).rejects.toThrow(message);
  });
});
