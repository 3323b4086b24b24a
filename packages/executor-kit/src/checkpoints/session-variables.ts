import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import {
  BackendUnavailableError,
  ByteQueue,
  checkpointPartBytes,
  type CheckpointVariable,
  type CheckpointVariables,
  type CheckpointWriter,
  InvalidInputError,
  isPythonIdentifier,
  parseJson,
  type SavedCheckpoint,
} from "@fenced/core";
import { afterMs, followSignals, untilAborted } from "@fenced/core/abort";
import type { Place } from "../place.ts";
import { timeIsUp } from "../run/block-run.ts";
import { wholeFile } from "../workspace/backend-files.ts";
import { collectContent } from "../workspace/file-limits.ts";
import type { Issues } from "./issues.ts";

const keepProgram: string = readFileSync(new URL("./keep-variables.py", import.meta.url), "utf8");
const restoreProgram: string = readFileSync(new URL("./restore-variables.py", import.meta.url), "utf8");

/** Bytes of one variable and of all of them, and their number. */
const limits = { limit: 268_435_456, total: 1_073_741_824, most: 10_000 } as const;
const reportBytes = 4_194_304;
/** Milliseconds that all variables may take: they decide themselves how they are written and read. */
const timeoutMs = 300_000;
const longestError = 500;

/** A place that can run Python in an interpreter that lives on. */
type InterpreterPlace = Pick<Place, "files" | "facts" | "run" | "copy">;

/**
 * Keeps the variables of a session: its interpreter writes each into a file of the workspace, which is stored and removed.
 * A copy of it does where there can be one: writing a variable may run any code, which may never end.
 *
 * @throws BackendUnavailableError if the interpreter does not answer.
 */
export async function keepVariables(
  place: InterpreterPlace,
  {
    writer,
    issues,
    signal,
  }: { readonly writer: CheckpointWriter; readonly issues: Issues; readonly signal: AbortSignal },
): Promise<CheckpointVariables> {
  const copy = await place.copy?.(signal).catch(() => signal.throwIfAborted());
  try {
    return await keepVariablesOf(copy ?? place, { writer, issues, signal });
  } finally {
    await copy?.end({ isReplaced: true });
  }
}

async function keepVariablesOf(
  place: InterpreterPlace,
  { writer, issues, signal }: Parameters<typeof keepVariables>[1],
): Promise<CheckpointVariables> {
  const exchange = await Exchange.open(place, signal);
  try {
    const report = await exchange.run(keepProgram, "_fenced_keep_variables", limits);
    for (const [name, reason] of report.leftOut) issues.add("variable", name, reason);
    const variables: CheckpointVariable[] = [];
    let left: number = limits.total;
    // Modules have no file; the others are numbered among all.
    for (const [row, [name, format, module]] of report.kept.slice(0, limits.most).entries()) {
      if (!isFormat(format) || !isPythonIdentifier(name)) {
        issues.add("variable", name, "Its name is not an identifier");
        continue;
      }
      // Code may have made the report, and the files as large as it likes.
      const atMost = Math.min(limits.limit, left);
      const content = format === "module" ? [Buffer.from(module)] : exchange.content(String(row), atMost);
      const { size, parts } = await stored(content, writer);
      if (size > atMost) {
        left = 0;
        issues.add("variable", name, `It takes more than ${atMost} bytes`);
        continue;
      }
      left -= size;
      variables.push({ name, format, size, parts });
    }
    return { interpreter: report.interpreter, variables };
  } finally {
    await exchange.close();
  }
}

/**
 * Reads what `restoreVariables` will need, so that nothing has changed yet if it cannot.
 *
 * @throws CheckpointError if something in the store is missing or damaged.
 */
export async function checkVariables(saved: SavedCheckpoint, signal: AbortSignal): Promise<void> {
  for (const { parts } of saved.variables?.variables ?? []) {
    for (const part of parts) await untilAborted(saved.content(part), signal);
  }
}

/**
 * Brings the variables of a checkpoint back. Only the session's interpreter reads them; if it ends meanwhile, none is
 * back.
 *
 * @returns the names of those that are there again.
 * @throws CheckpointError if one is missing in the store or damaged.
 */
export async function restoreVariables(
  place: InterpreterPlace,
  { saved, issues, signal }: { readonly saved: SavedCheckpoint; readonly issues: Issues; readonly signal: AbortSignal },
): Promise<readonly string[]> {
  const { interpreter, variables = [] } = saved.variables ?? {};
  if (variables.length === 0) return [];
  const exchange = await Exchange.open(place, signal);
  try {
    const plan: (readonly [string, string, string])[] = [];
    for (const [index, { name, format, parts }] of variables.entries()) {
      const written = await exchange.write(String(index), parts, saved);
      plan.push([name, format, format === "module" ? written : ""]);
    }
    const given = { interpreter, variables: plan };
    const report = await exchange.run(restoreProgram, "_fenced_restore_variables", given).catch((error: unknown) => {
      // Reading a variable may run any code, and would do so again at each start.
      if (!BackendUnavailableError.isInstance(error) || signal.aborted) throw error;
      return undefined;
    });
    if (!report) {
      loseVariables(saved, issues, "The interpreter did not report what it had restored");
      return [];
    }
    for (const [name, reason] of report.leftOut) issues.add("variable", name, reason);
    const names = new Set(variables.map(({ name }) => name));
    return report.kept.map(([name]) => name).filter((name) => names.has(name));
  } finally {
    await exchange.close();
  }
}

/** Lists the variables of a checkpoint that cannot come back, all for one reason. */
export function loseVariables(saved: SavedCheckpoint, issues: Issues, reason: string): void {
  for (const { name } of saved.variables?.variables ?? []) issues.add("variable", name, reason);
}

function isFormat(format: string): format is CheckpointVariable["format"] {
  return ["pickle", "cloudpickle", "dill", "module"].includes(format);
}

async function stored(
  content: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
  writer: CheckpointWriter,
): Promise<Pick<CheckpointVariable, "size" | "parts">> {
  const queue = new ByteQueue();
  const parts = [];
  let size = 0;
  for await (const chunk of content) {
    queue.add(chunk);
    size += chunk.length;
    while (queue.length >= checkpointPartBytes) parts.push(await writer.put(queue.take(checkpointPartBytes)));
  }
  if (queue.length > 0) parts.push(await writer.put(queue.take()));
  return { size, parts };
}

/** What the program in the place reports. Code can make it report anything. */
interface VariablesReport {
  readonly interpreter: string;
  /** Name, format and module. */
  readonly kept: readonly (readonly [string, string, string])[];
  /** Name and reason. */
  readonly leftOut: readonly (readonly [string, string])[];
}

/** A directory in the workspace, through which variables travel. */
class Exchange {
  readonly #place: InterpreterPlace;
  readonly #signal: AbortSignal;
  readonly #directory: string;
  readonly #workspace: string;

  private constructor(place: InterpreterPlace, signal: AbortSignal, workspace: string) {
    this.#place = place;
    this.#signal = signal;
    this.#workspace = workspace;
    this.#directory = `.fenced-variables-${randomUUID()}`;
  }

  static async open(place: InterpreterPlace, signal: AbortSignal): Promise<Exchange> {
    const { workspacePath } = place.facts;
    if (workspacePath === undefined) throw noVariables();
    const exchange = new Exchange(place, signal, workspacePath);
    await place.files.write(`${exchange.#directory}/begin`, "");
    return exchange;
  }

  async run(program: string, name: string, plan: object): Promise<VariablesReport> {
    const directory = `${this.#workspace}/${this.#directory}`;
    const json = JSON.stringify(JSON.stringify({ directory, ...plan }));
    // No name stays behind. A JSON string literal is also a Python one.
    const code = `exec(compile(${JSON.stringify(`${program}\n${name}(_variables, _plan)\n`)}, "<fenced>", "exec"), {"_variables": globals(), "_plan": __import__("json").loads(${json})})`;
    const said = await this.#runBlock(code);
    try {
      return reportOf(parseJson(await this.#read("report", reportBytes)));
    } catch (cause) {
      this.#signal.throwIfAborted();
      throw new BackendUnavailableError(
        `The session's interpreter did not report its variables: ${said.trim().slice(-longestError)}`,
        {
          remedy: "Take the checkpoint without `variables`, or call restart().",
          cause,
        },
      );
    }
  }

  content(file: string, atMost: number): AsyncIterable<Uint8Array> {
    return this.#place.files.content(`${this.#directory}/${file}`, { ...wholeFile, end: atMost });
  }

  /** Writes a variable's parts to a file. Returns them as text if they are short. */
  async write(file: string, parts: CheckpointVariable["parts"], saved: SavedCheckpoint): Promise<string> {
    const writer = await this.#place.files.writer(`${this.#directory}/${file}`);
    let last = "";
    try {
      for (const part of parts) {
        this.#signal.throwIfAborted();
        const bytes = await saved.content(part);
        last = Buffer.from(bytes.subarray(0, longestError)).toString();
        await writer.write(bytes);
      }
      await writer.close();
    } catch (error) {
      await writer.abort();
      throw error;
    }
    return last;
  }

  async close(): Promise<void> {
    // The session may be gone.
    await this.#place.files.remove(this.#directory).catch(() => {});
  }

  async #read(file: string, readBytes: number): Promise<Uint8Array> {
    const path = `${this.#directory}/${file}`;
    return collectContent(path, this.#place.files.content(path, wholeFile), { readBytes });
  }

  async #runBlock(code: string): Promise<string> {
    const ending = new AbortController();
    const unfollow = followSignals(ending, [this.#signal]);
    const cancel = afterMs(timeoutMs, () => ending.abort(timeIsUp));
    let said = "";
    try {
      const block = { language: "python", code, env: {}, timeoutMs, setup: true } as const;
      await this.#place.run(block, {
        signal: ending.signal,
        write(event): undefined {
          if (event.type === "stderr") said = (said + Buffer.from(event.data).toString()).slice(-longestError);
        },
      });
      return said;
    } finally {
      cancel();
      unfollow();
    }
  }
}

function reportOf(value: unknown): VariablesReport {
  const field = (name: string): unknown =>
    typeof value === "object" && value !== null ? Reflect.get(value, name) : undefined;
  const interpreter = field("interpreter");
  if (typeof interpreter !== "string" || interpreter.length > 100) throw new SyntaxError("no interpreter");
  return { interpreter, kept: rows(field("kept")).map(triple), leftOut: rows(field("leftOut")).map(pair) };
}

function rows(value: unknown): readonly (readonly unknown[])[] {
  const all: readonly unknown[] = Array.isArray(value) ? value : [];
  return all.map((row): readonly unknown[] => (Array.isArray(row) ? row : []));
}

function triple([name, format, module]: readonly unknown[]): readonly [string, string, string] {
  return [text(name), text(format), text(module)];
}

function pair([name, reason]: readonly unknown[]): readonly [string, string] {
  return [text(name), text(reason)];
}

function text(value: unknown): string {
  return typeof value === "string" ? value.slice(0, longestError) : "";
}

/** The error for variables of an executor that has none. */
export function noVariables(): InvalidInputError {
  return new InvalidInputError("This executor has no Python variables to keep", {
    remedy: "Leave out `variables`, or create a stateful executor: `stateful: true`, or one of Jupyter.",
    option: "variables",
  });
}
