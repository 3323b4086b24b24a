import { describe, expect, test, vi } from "vitest";
import * as core from "../../src/index.ts";
import {
  BackendUnavailableError,
  CheckpointError,
  ComponentError,
  ExecutorStoppedError,
  FencedError,
  FileNotFoundError,
  FunctionSetupError,
  InvalidInputError,
  ModelClientError,
  QuotaExceededError,
  RunNotFoundError,
  SessionInUseError,
  WorkspacePathError,
} from "../../src/index.ts";

const classes = [
  [BackendUnavailableError, "backend_unavailable"],
  [CheckpointError, "checkpoint"],
  [ComponentError, "component_invalid"],
  [ExecutorStoppedError, "executor_stopped"],
  [FileNotFoundError, "file_not_found"],
  [FunctionSetupError, "function_setup_failed"],
  [InvalidInputError, "invalid_input"],
  [ModelClientError, "model_failed"],
  [QuotaExceededError, "quota_exceeded"],
  [RunNotFoundError, "run_not_found"],
  [SessionInUseError, "session_in_use"],
  [WorkspacePathError, "path_outside_workspace"],
] as const;

const remedy = "Do it otherwise.";

/** The base class, and what `parseJson` throws, which no user sees: its callers say what to do. */
const untested = new Set(["FencedError", "JsonLimitError"]);

test("every error class that is exported is tested here", () => {
  const exported = Object.entries(core).filter(([name]) => name.endsWith("Error") && !untested.has(name));
  expect(exported.map(([, value]) => value)).toEqual(classes.map(([ErrorClass]) => ErrorClass));
});

test("a message contains no control characters for a terminal", () => {
  const said = "Welcome\u001B]52;c;ZXZpbA==\u0007 \u202Eback\u2066 \u001B[2Jend";
  const error = new BackendUnavailableError(`The host says: ${said}`, { remedy: `Ask ${said}.` });
  expect(error.message).toBe("The host says: Welcome back end. Ask Welcome back end.");
  expect(error.remedy).toBe("Ask Welcome back end.");
});

describe.each(classes)("%o", (ErrorClass, code) => {
  const error = new ErrorClass("It is wrong", { remedy, cause: 1 });

  test("is an Error with its own name and code", () => {
    expect(error).toBeInstanceOf(Error);
    expect(error).toBeInstanceOf(FencedError);
    expect(error.name).toBe(ErrorClass.name);
    expect(error.code).toBe(code);
    expect(error.stack).toContain(`${ErrorClass.name}: It is wrong.`);
  });

  test("says what is wrong, then what to do", () => {
    expect(error.message).toBe("It is wrong. Do it otherwise.");
    expect(error.remedy).toBe(remedy);
  });

  test("has the option that the remedy is about, if it is about one", () => {
    expect(new ErrorClass("No", { remedy, option: "image" }).option).toBe("image");
    expect(error).not.toHaveProperty("option");
  });

  test("is distinguished from the others by isInstance", () => {
    const others = classes.filter(([Other]) => Other !== ErrorClass).map(([Other]) => new Other("No", { remedy }));
    expect(ErrorClass.isInstance(error)).toBe(true);
    expect(FencedError.isInstance(error)).toBe(true);
    expect(others.filter((other) => ErrorClass.isInstance(other))).toEqual([]);
  });

  test("does not show its markers when it is printed or copied", () => {
    expect(Object.keys(error).toSorted()).toEqual(["code", "name", "remedy"]);
    expect(Object.getOwnPropertySymbols(Object.assign({}, error))).toEqual([]);
  });

  test.each([undefined, null, "text", 1, {}, new Error("plain"), { code }, ErrorClass])("is not %j", (value) => {
    expect(ErrorClass.isInstance(value)).toBe(false);
    expect(FencedError.isInstance(value)).toBe(false);
  });
});

describe("the message", () => {
  test.each([
    ["It is wrong", "It is wrong. Do it otherwise."],
    ["It is wrong.", "It is wrong. Do it otherwise."],
    ["It is wrong!  ", "It is wrong! Do it otherwise."],
    ["Is it wrong?", "Is it wrong? Do it otherwise."],
    ["These are wrong:", "These are wrong: Do it otherwise."],
  ])("for %j is %j", (problem, message) => {
    expect(new InvalidInputError(problem, { remedy }).message).toBe(message);
  });
});

describe("the cause", () => {
  test("is kept", () => {
    const cause = new Error("inner");
    expect(new InvalidInputError("No", { remedy, cause }).cause).toBe(cause);
  });

  test("is absent if none was given", () => {
    expect("cause" in new InvalidInputError("No", { remedy })).toBe(false);
    expect("cause" in new InvalidInputError("No", { remedy, cause: undefined })).toBe(true);
  });
});

describe("two copies of the package", () => {
  test("recognise each other's errors by isInstance, where instanceof fails", async () => {
    vi.resetModules();
    const other = await import("../../src/index.ts");
    const error = new other.InvalidInputError("No", { remedy });
    expect(other.InvalidInputError).not.toBe(InvalidInputError);
    expect(error).not.toBeInstanceOf(InvalidInputError);
    expect(error).not.toBeInstanceOf(FencedError);
    expect(InvalidInputError.isInstance(error)).toBe(true);
    expect(FencedError.isInstance(error)).toBe(true);
    expect(ComponentError.isInstance(error)).toBe(false);
    expect(other.InvalidInputError.isInstance(new InvalidInputError("No", { remedy }))).toBe(true);
  });
});
