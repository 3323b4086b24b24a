import { BackendUnavailableError } from "../errors/backend-unavailable-error.ts";
import { CheckpointError } from "../errors/checkpoint-error.ts";
import { ComponentError } from "../errors/component-error.ts";
import { ExecutorStoppedError } from "../errors/executor-stopped-error.ts";
import { FencedError } from "../errors/fenced-error.ts";
import { FileNotFoundError } from "../errors/file-not-found-error.ts";
import { FunctionSetupError } from "../errors/function-setup-error.ts";
import { InvalidInputError } from "../errors/invalid-input-error.ts";
import { ModelClientError } from "../errors/model-client-error.ts";
import { QuotaExceededError } from "../errors/quota-exceeded-error.ts";
import { RunNotFoundError } from "../errors/run-not-found-error.ts";
import { SessionInUseError } from "../errors/session-in-use-error.ts";
import { WorkspacePathError } from "../errors/workspace-path-error.ts";

/** An error as plain JSON, with only what a client may know: no stack and no cause. */
export interface JsonError {
  readonly type: "error";
  /** The `code` of a `FencedError`; otherwise `aborted`, `timeout` or `internal`. */
  readonly code: string;
  readonly name: string;
  /** The message of a `FencedError`; other messages are not meant for clients and stay on the server. */
  readonly message: string;
  /** What to do about it; empty if the error has no remedy. */
  readonly remedy: string;
}

const classes: Readonly<Record<string, new (problem: string, options: { readonly remedy: string }) => FencedError>> = {
  backend_unavailable: BackendUnavailableError,
  checkpoint: CheckpointError,
  component_invalid: ComponentError,
  executor_stopped: ExecutorStoppedError,
  file_not_found: FileNotFoundError,
  function_setup_failed: FunctionSetupError,
  invalid_input: InvalidInputError,
  model_failed: ModelClientError,
  path_outside_workspace: WorkspacePathError,
  quota_exceeded: QuotaExceededError,
  run_not_found: RunNotFoundError,
  session_in_use: SessionInUseError,
};

/** Converts what was thrown to plain JSON. */
export function errorToJson(error: unknown): JsonError {
  if (FencedError.isInstance(error)) {
    const { code, name, message, remedy } = error;
    return { type: "error", code, name, message, remedy };
  }
  const name = error instanceof Error ? error.name : "Error";
  if (name === "AbortError") return bare("aborted", name, "The run was aborted.");
  if (name === "TimeoutError") return bare("timeout", name, "The run timed out.");
  return bare("internal", "Error", "Internal error; see the server's log.");
}

/** The error to throw on the client: of the original class, if that is one of Fenced's. */
export function errorFromJson({ code, name, message, remedy }: JsonError): Error {
  const FencedClass = Object.hasOwn(classes, code) ? classes[code] : undefined;
  if (FencedClass) {
    const problem = message.endsWith(remedy) ? message.slice(0, message.length - remedy.length).trimEnd() : message;
    return new FencedClass(problem, { remedy });
  }
  const error = new Error(message);
  error.name = name;
  return error;
}

function bare(code: string, name: string, message: string): JsonError {
  return { type: "error", code, name, message, remedy: "" };
}
