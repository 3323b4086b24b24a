import { readFileSync } from "node:fs";
import type { ExecutorCapabilities } from "@fenced/core";
import { blockEnvironment } from "@fenced/executor-kit";
import type { PoolType } from "../api/pool-metadata.ts";

/** The executor's functions in a session. */
export interface OfferedFunctions {
  /** The module that they are imported from, and the directory that it is in. */
  readonly module: string;
  readonly directory: string;
  readonly names: readonly string[];
}

/** What the session is told before a block. */
interface BlockBeginning {
  /** The name of the log, in the session's root. */
  readonly logName: string;
  readonly env: Readonly<Record<string, string>>;
  readonly functions: OfferedFunctions;
}

/** How blocks are run in the sessions of one type of pool. */
export interface PoolLanguage {
  readonly capabilities: ExecutorCapabilities;
  /** Code that makes a session ready; may be run again. `undefined`: nothing has to be done. */
  readonly install: string | undefined;
  /** Code that prints the names of the packages, one a line, where there are some. */
  readonly listPackages: string | undefined;
  /** Whether blocks write their output into a log. */
  readonly hasLog: boolean;
  /** Code to be run before a block; fails where `install` was not run. `undefined`: nothing has to be done. */
  begin(block: BlockBeginning): string | undefined;
  /** Whether a failure of `begin` says that the session is another one. */
  isLost(stderr: string): boolean;
  /** What is sent for a block. */
  wrap(code: string, env: Readonly<Record<string, string>>): string;
}

const pythonHelper: string = readFileSync(new URL("./session-helper.py", import.meta.url), "utf8");
const nodeHelper: string = readFileSync(new URL("./node-helper.mjs", import.meta.url), "utf8");

const common = { displays: false, functions: [], hostFunctions: [], stdin: false, isolation: "remote" } as const;
const python: PoolLanguage = {
  capabilities: { ...common, languages: ["python"], stateful: true, displays: true, functions: ["python"] },
  install: installPython(),
  listPackages: `__import__("sys").modules["__fenced__"].packages()`,
  hasLog: true,
  begin: ({ logName, env, functions }) => {
    const words = [`/mnt/data/${logName}`, JSON.stringify({ ...blockEnvironment, ...env }), JSON.stringify(functions)];
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
  hasLog: false,
  begin: () => undefined,
  isLost: () => false,
  // A shell of its own for the block, so that its line numbers are right and it cannot end early what is around it.
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

/** Python that makes the helper a module of the session, without a name of its own being left behind. */
function installPython(): string {
  return `
def _fenced_install(source):
    import types
    module = types.ModuleType("__fenced__")
    exec(source, module.__dict__)
    module.install(module)
_fenced_install(${JSON.stringify(pythonHelper)})
del _fenced_install
`;
}

function quote(text: string): string {
  return `'${text.replaceAll("'", String.raw`'\''`)}'`;
}
