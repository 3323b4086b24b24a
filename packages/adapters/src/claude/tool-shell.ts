import { ToolError } from "@anthropic-ai/sdk/lib/tools/ToolError";
import { untilAborted } from "@fenced/core/abort";
import * as z from "zod";
import type { ToolCall } from "./claimed-session.ts";
import { given, text } from "./given.ts";
import { RunningShell } from "./running-shell.ts";

/** Limit on a command, in milliseconds, unless its call has another one. */
const defaultTimeoutMs = 120_000;
/** Bash if the sandbox has it. What it reads on its input are its commands, without startup files. */
const anyShell = "if command -v bash > /dev/null; then exec bash --noprofile --norc; fi; exec /bin/sh";

const bashInput = z.object({
  command: text,
  restart: z.boolean().nullish(),
  timeout_ms: z.int().nullish(),
});

interface ShellParts {
  /** Environment variables of the shell. */
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Of a longer output, only the end is kept. */
  readonly maxOutputBytes: number;
}

/** The tool `bash`: a shell that keeps its directory, variables and background jobs from call to call. */
export class ToolShell {
  readonly #parts: ShellParts;
  #shell: RunningShell | undefined;
  /** That of the sandbox in which the shell was started. */
  #generation = 0;
  #last: Promise<unknown> = Promise.resolve();

  constructor(parts: ShellParts) {
    this.#parts = parts;
  }

  /** Calls run one after another. */
  run(input: unknown, call: ToolCall): Promise<string> {
    const turn = this.#last.then(() => this.#runNow(given(bashInput, input, "bash"), call));
    this.#last = turn.catch(() => {});
    return turn;
  }

  async #runNow({ command, restart, timeout_ms }: z.infer<typeof bashInput>, call: ToolCall): Promise<string> {
    call.signal.throwIfAborted();
    if (restart === true || this.#generation !== call.generation) await this.#end();
    this.#generation = call.generation;
    if (command === "") {
      if (restart === true) return "bash session restarted";
      throw new ToolError("bash: command is required");
    }
    this.#shell ??= await this.#start(call);
    const { output, exitCode, failure } = await this.#shell.execute(command, {
      timeoutMs: timeout_ms ?? defaultTimeoutMs,
      signal: call.signal,
    });
    if (exitCode === 0) return output;
    if (exitCode !== undefined) throw new ToolError(output === "" ? `exit ${exitCode}` : output);
    // What still runs would answer the next call.
    await this.#end();
    const error = new ToolError(`bash: ${failure?.reason ?? "unknown end"}${output === "" ? "" : `\n${output}`}`);
    throw Object.assign(error, { cause: failure?.cause });
  }

  async #start({ sandbox, signal }: ToolCall): Promise<RunningShell> {
    const env: Record<string, string> = {};
    for (const [name, value] of Object.entries(this.#parts.env)) if (value !== undefined) env[name] = value;
    // Without the signal, which is only this call's: the shell serves later ones, too.
    const starting = sandbox.start({
      command: ["/bin/sh", "-c", anyShell],
      env: { ...env, PS1: "", PS2: "", TERM: "dumb" },
      merged: true,
    });
    try {
      return new RunningShell(await untilAborted(starting, signal), this.#parts.maxOutputBytes);
    } catch (error) {
      starting.then((started) => started.kill()).catch(() => {});
      throw error;
    }
  }

  async #end(): Promise<void> {
    const shell = this.#shell;
    this.#shell = undefined;
    await shell?.kill();
  }
}
