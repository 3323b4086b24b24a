import { ComponentError } from "../errors/component-error.ts";
import type { JsonObject, JsonValue } from "../json-value.ts";

/** Options of `dumpComponentConfig`. */
export interface DumpComponentConfigOptions {
  /**
   * Settings that must never be dumped, with dots for nested ones: `["credential", "server.token"]`. If one of them is
   * set to anything but `undefined` or `null`, dumping throws. Default: none.
   */
  readonly secrets?: readonly string[] | undefined;
}

interface DumpContext {
  readonly secrets: ReadonlySet<string>;
  /** What cannot be dumped, each with the reason. */
  readonly losses: string[];
  /** The objects that contain the current value, to find cycles. */
  readonly ancestors: Set<object>;
}

/**
 * Converts a component's settings to the `config` of its `ComponentModel`. Settings that are `undefined` are left out;
 * an object with a `toJSON` method (a `Date`, a `URL`, a `FunctionWithRequirements`) becomes what that returns. Dump
 * nested components with their own `dumpComponent` first.
 *
 * Anything that plain JSON cannot represent is an error, because the loaded component would behave differently without
 * it: functions, class instances, binary data, symbols, bigints, `NaN`, infinities, cycles.
 *
 * @param provider - the component's provider, for the message.
 * @throws ComponentError that names every setting that would be lost, and every secret that is set.
 *
 * @example
 * dumpComponentConfig("@fenced/executor-aca:ACADynamicSessionsCodeExecutor", this.#options, { secrets: ["credential"] });
 */
export function dumpComponentConfig(
  provider: string,
  settings: Readonly<Record<string, unknown>>,
  options: DumpComponentConfigOptions = {},
): JsonObject {
  const context: DumpContext = { secrets: new Set(options.secrets), losses: [], ancestors: new Set() };
  const config = dumpObject(settings, "", context);
  if (context.losses.length === 0) return config;
  throw new ComponentError(`${provider} cannot be dumped without loss: ${context.losses.join("; ")}`, {
    remedy: "Dump a component without these settings, and add them in the program that loads it.",
  });
}

function dumpValue(value: unknown, path: string, context: DumpContext): JsonValue {
  if (value === null || typeof value === "string" || typeof value === "boolean") return value;
  if (typeof value === "number" && Number.isFinite(value)) return value;
  if (typeof value !== "object") return lose(`${path} is ${describe(value)}`, context);
  if (context.ancestors.has(value)) return lose(`${path} contains itself`, context);
  context.ancestors.add(value);
  const dumped = dumpAnyObject(value, path, context);
  context.ancestors.delete(value);
  return dumped;
}

function dumpAnyObject(value: object, path: string, context: DumpContext): JsonValue {
  // A Buffer has a toJSON method, but loading would not turn its output back into a Buffer.
  if (ArrayBuffer.isView(value)) return lose(`${path} is binary data`, context);
  if (hasToJson(value)) return dumpValue(value.toJSON(), path, context);
  if (Array.isArray(value)) return Array.from(value, (item, index) => dumpValue(item, `${path}[${index}]`, context));
  if (!isPlainObject(value)) return lose(`${path} is ${describe(value)}`, context);
  return dumpObject(value, path, context);
}

function dumpObject(object: object, path: string, context: DumpContext): JsonObject {
  for (const symbol of Object.getOwnPropertySymbols(object)) {
    lose(`${path === "" ? "the config" : path} has the key ${String(symbol)}`, context);
  }
  const entries: [string, JsonValue][] = [];
  for (const [key, value] of Object.entries(object)) {
    const keyPath = path === "" ? key : `${path}.${key}`;
    if (value === undefined) continue;
    if (value !== null && context.secrets.has(keyPath)) lose(`${keyPath} is a secret`, context);
    else entries.push([key, dumpValue(value, keyPath, context)]);
  }
  return Object.fromEntries(entries);
}

function lose(reason: string, context: DumpContext): null {
  context.losses.push(reason);
  return null;
}

function hasToJson(value: object): value is { toJSON(): unknown } {
  return "toJSON" in value && typeof value.toJSON === "function";
}

function isPlainObject(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value);
  // The prototype chain of an object from another realm ends at that realm's Object.prototype.
  return prototype === null || (typeof prototype === "object" && Object.getPrototypeOf(prototype) === null);
}

function describe(value: unknown): string {
  if (value === undefined) return "undefined";
  if (typeof value === "number") return String(value);
  if (typeof value !== "object" || value === null) return `a ${typeof value}`;
  const made: unknown = Reflect.get(value, "constructor");
  return typeof made === "function" && made.name !== "" ? `an instance of ${made.name}` : "an instance of a class";
}
