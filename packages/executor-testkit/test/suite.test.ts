import { InvalidInputError } from "@fenced/core";
import { describe, expect, it } from "vitest";
import { testCodeExecutor, type SuiteOptions, type TestRunner } from "../src/index.ts";
import { listedCases } from "../src/selected-cases.ts";
import { localSubject } from "./local-subject.ts";
import { collectCases } from "./run-case.ts";

describe("the suite", () => {
  it("is defined without creating an executor, and before its host command is known", () => {
    const cases = collectCases({
      ...localSubject,
      create: () => {
        throw new Error("must not be called");
      },
      get hostCommand(): never {
        throw new Error("must not be read");
      },
    });
    expect(cases.size).toBeGreaterThan(200);
  });

  it("runs only the named groups, and its title says so", () => {
    const titles: string[] = [];
    const runner = {
      describe: (name: string, define: () => void) => {
        titles.push(name);
        define();
      },
      it: () => {},
    };
    testCodeExecutor(runner, localSubject, { groups: ["leaks", "files"] });
    expect(titles).toEqual([
      expect.stringMatching(/^LocalCommandLineCodeExecutor in 2 of the suite's \d+ groups: files, leaks$/),
      "files",
      "leaks",
    ]);
    titles.length = 0;
    testCodeExecutor(runner, localSubject);
    expect(titles[0]).toBe("LocalCommandLineCodeExecutor is a code executor");
  });

  it("can leave out what a place does not decide, and says so", () => {
    const all = collectCases(localSubject);
    const place = collectCases(localSubject, { cases: "place" });
    const connection = collectCases(localSubject, { cases: "connection" });
    const smoke = collectCases(localSubject, { cases: "smoke" });
    expect([...all.keys()]).toEqual(expect.arrayContaining([...new Set(listedCases())]));
    expect(place.size).toBeLessThan(all.size - 80);
    expect(connection.size).toBeLessThan(place.size / 2);
    expect(smoke.size).toBeLessThanOrEqual(50);
    // What a mechanism shows in a place is no case of the base class alone.
    expect([...connection.keys()]).toEqual(expect.arrayContaining([...smoke.keys()]));
    expect([...place.keys()]).toEqual(expect.arrayContaining([...connection.keys()]));
    const titles: string[] = [];
    const describeOnce = (name: string) => titles.push(name);
    testCodeExecutor({ describe: describeOnce, it: () => {} }, localSubject, { cases: "place" });
    expect(titles).toEqual(["LocalCommandLineCodeExecutor is a code executor, as far as its place decides"]);
  });

  it("rejects unknown groups and an empty list", () => {
    const define = (...groups: string[]) => collectCases(localSubject, { groups });
    expect(() => define("files", "leeks")).toThrow(/no group "leeks".*"leaks"/);
    expect(() => define()).toThrow(/`groups` is empty.*whole suite/);
  });

  it.each([
    [{ ...localSubject, takeWorkDir: true }, {}, 'unknown option "takeWorkDir". Did you mean "takesWorkDir"?'],
    [{ ...localSubject, create: undefined }, {}, '"create" is missing. It must be a function.'],
    [{ ...localSubject, hostCommand: "node host.js" }, {}, '"hostCommand" is a string. It must be an array.'],
    [{ ...localSubject, hostCommand: [] }, {}, '"hostCommand'],
    [{ ...localSubject, patience: 5 }, {}, 'Did you mean "patienceMs", in milliseconds?'],
    [{ ...localSubject, patienceMs: 0 }, {}, '"patienceMs" is 0.'],
    [undefined, {}, "the options are missing"],
    [localSubject, { group: ["files"] }, 'unknown option "group". Did you mean "groups"?'],
    [localSubject, { groups: "files" }, '"groups" is a string. It must be an array.'],
    [localSubject, { cases: "some" }, '"cases" is "some"'],
    [localSubject, { concurrent: "yes" }, '"concurrent" is a string. It must be true or false.'],
  ])("rejects an invalid subject or invalid options: %o %j", (subject, options, message) => {
    const define = (): unknown => Reflect.apply(testCodeExecutor, undefined, [{ describe, it }, subject, options]);
    expect(define).toThrow(InvalidInputError);
    expect(define).toThrow(message);
  });

  it("rejects an invalid test runner", () => {
    const define = (): unknown => Reflect.apply(testCodeExecutor, undefined, [{ describe }, localSubject]);
    expect(define).toThrow('"runner" is an object. It must be { describe, it }.');
    const wrongHook = { describe, it, afterAll: "later" };
    const defineWith = (): unknown => Reflect.apply(testCodeExecutor, undefined, [wrongHook, localSubject]);
    expect(defineWith).toThrow('"afterAll" is not valid. It must be a function.');
  });

  it("accepts a subject that is an instance of a class", () => {
    class Subject {
      readonly name = localSubject.name;
      readonly takesWorkDir = true;
      readonly hostCommand = localSubject.hostCommand;
      create(): never {
        throw new Error("must not be called");
      }
      load(): never {
        throw new Error("must not be called");
      }
    }
    expect(collectCases(new Subject()).size).toBeGreaterThan(200);
  });

  it("runs waiting cases concurrently only if told to, and never those that measure this process", () => {
    const concurrent = (options: SuiteOptions) => {
      const names: string[] = [];
      const define: TestRunner["it"] = (name, settings) => {
        if (settings.concurrent === true) names.push(name);
      };
      testCodeExecutor({ describe: (_name, group) => group(), it: define }, localSubject, options);
      return names;
    };
    expect(concurrent({})).toEqual([]);
    const names = concurrent({ concurrent: true });
    expect(names).toContain("ends the block with exit code 124 and keeps its output");
    expect(names).not.toContain("pauses the program and buffers little of its output");
    expect(names).not.toContain("nothing remains after the program dies of SIGKILL");
  });

  it("has a unique name for each case", () => {
    let defined = 0;
    const names = collectCases(localSubject);
    const count = { describe: (_name: string, define: () => void) => define(), it: () => defined++ };
    testCodeExecutor(count, localSubject);
    expect(names.size).toBe(defined);
  });

  it("fails all cases, and skips none, when the executor cannot be created", async () => {
    const reason = new Error("no such place");
    const cases = collectCases({ ...localSubject, create: () => Promise.reject(reason) });
    const skip = () => {
      throw new Error("must not be called");
    };
    for (const test of cases.values()) await expect(test({ skip })).rejects.toBe(reason);
  });
});
