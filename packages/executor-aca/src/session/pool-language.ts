import { readFileSync } from "node:fs";
import type { ExecutorCapabilities } from "@fenced/core";
import { blockEnvironment } from "@fenced/executor-kit";
import { sharedModules } from "@fenced/executor-kit/supervisor";
import type { PoolType } from "../api/wire-types.ts";

/** The executor's functions in a session. */
export interface OfferedFunctions {
  /** The module that they are imported from, and the directory that it is in. */
  readonly module: string;
  readonly directory: string;
  readonly names: readonly string[];
}

/** What a session needs before a block. */
interface BlockBeginning {
  /** The name of the log, in the session's root. */
  readonly logName: string;
  readonly env: Readonly<Record<string, string>>;
  readonly functions: OfferedFunctions;
}

/** How blocks run in the sessions of one type of pool. */
export interface PoolLanguage {
  readonly capabilities: ExecutorCapabilities;
  /** Code that prepares a session; may run again. `undefined` if there is nothing to do. */
  readonly install: string | undefined;
  /** Code that prints the names of the packages, one per line, if there are any. */
  readonly listPackages: string | undefined;
  /** Whether the interpreter can run blocks in a thread. */
  readonly pumps: boolean;
  /** Whether blocks write their output into a log. */
  readonly hasLog: boolean;
  /** Code to run before a block; fails if `install` was not run. `undefined` if there is nothing to do. */
  begin(block: BlockBeginning): string | undefined;
  /** Whether a failure of `begin` shows that the session was replaced. */
  isLost(stderr: string): boolean;
  /** The code to send for a block. */
  wrap(code: string, env: Readonly<Record<string, string>>): string;
}

const pythonHelper: string = readFileSync(new URL("./session-helper.py", import.meta.url), "utf8");
const nodeHelper: string = readFileSync(new URL("./node-helper.mjs", import.meta.url), "utf8");

const common = {
  displays: false,
  functions: [],
  hostFunctions: [],
  stdin: false,
  files: [],
  isolation: "remote",
} as const;
/** The path of an executor's file in a session. */
export function pathInSession(logName: string): string {
  return `/mnt/data/${logName}`;
}

const python: PoolLanguage = {
  capabilities: { ...common, languages: ["python"], stateful: true, displays: true, functions: ["python"] },
  install: installPython(),
  listPackages: `__import__("sys").modules["__fenced__"].packages()`,
  pumps: true,
  hasLog: true,
  begin: ({ logName, env, functions }) => {
    const words = [pathInSession(logName), JSON.stringify({ ...blockEnvironment, ...env }), JSON.stringify(functions)];
    const literals = words.map((word) => JSON.stringify(word));
    return `__import__("sys").modules["__fenced__"].begin(${literals.join(", ")})`;
  },
  isLost: (stderr) => stderr.includes("KeyError") && stderr.includes("__fenced__"),
  wrap: (code) => code,
};

const nodeSession = `globalThis[Symbol.for("fenced.session")]`;
const node: PoolLanguage = {
  capabilities: { ...common, languages: ["javascript"], stateful: true },
  install: nodeHelper,
  listPackages: undefined,
  pumps: false,
  hasLog: false,
  begin: ({ env }) => {
    const lost = `{ begin() { throw new Error("fenced: no session"); } }`;
    return `(${nodeSession} ?? ${lost}).begin(${JSON.stringify(env)})`;
  },
  isLost: (stderr) => stderr.includes("fenced: no session"),
  wrap: (code) => code,
};

const shell: PoolLanguage = {
  capabilities: { ...common, languages: ["bash"], stateful: false },
  install: undefined,
  listPackages: undefined,
  pumps: false,
  hasLog: false,
  begin: () => undefined,
  isLost: () => false,
  // The block gets its own shell, so that its line numbers are right and it cannot end the code around it.
  wrap: (code, env) => {
    const settings = Object.entries(env).map(([name, value]) => quote(`${name}=${value}`));
    return `cd /mnt/data && exec env ${settings.join(" ")} bash -c ${quote(code.replaceAll("\r\n", "\n"))} < /dev/null`;
  },
};

/** The language of each type of pool. */
export const poolLanguages: Readonly<Record<PoolType, PoolLanguage>> = {
  PythonLTS: python,
  NodeLTS: node,
  Shell: shell,
};

/** Python code that makes the helper a module of the session, and leaves no names behind. */
function installPython(): string {
  return `
def _fenced_install(shared, source):
    import sys, types
    for name, text in shared.items():
        module = sys.modules[name] = types.ModuleType(name)
        exec(compile(text, "<fenced>", "exec"), module.__dict__)
    module = types.ModuleType("__fenced__")
    exec(source, module.__dict__)
    module.install(module)
_fenced_install(${JSON.stringify(sharedModules)}, ${JSON.stringify(pythonHelper)})
del _fenced_install
`;
}

function quote(text: string): string {
  return `'${text.replaceAll("'", String.raw`'\''`)}'`;
}
