import type { ExecutorCapabilities } from "@fenced/core";
import { blockEnvironment } from "@fenced/executor-kit";
import type { PoolType } from "../api/pool-metadata.ts";
import { beginBlock, hasNoHelper, installHelper } from "./session-helper.ts";

/** How blocks are run in the sessions of one type of pool. */
export interface PoolLanguage {
  readonly capabilities: ExecutorCapabilities;
  /** Code that makes a session ready; may be run again. `undefined`: nothing has to be done. */
  readonly install: string | undefined;
  /** Code to be run before a block; fails where `install` was not run. `undefined`: nothing has to be done. */
  begin(logPath: string, env: Readonly<Record<string, string>>): string | undefined;
  /** Whether a failure of `begin` says that the session is another one. */
  isLost(stderr: string): boolean;
  /** What is sent for a block. */
  wrap(code: string, env: Readonly<Record<string, string>>): string;
}

const common = { displays: false, functions: [], stdin: false, isolation: "remote" } as const;

const python: PoolLanguage = {
  capabilities: { ...common, languages: ["python"], stateful: true, displays: true, functions: ["python"] },
  install: installHelper,
  begin: (logPath, env) => beginBlock(logPath, { ...blockEnvironment, ...env }),
  isLost: hasNoHelper,
  wrap: (code) => code,
};

const nodeMark = `globalThis[Symbol.for("fenced.session")]`;

const node: PoolLanguage = {
  capabilities: { ...common, languages: ["javascript"], stateful: true },
  install: `${nodeMark} = ${nodeMark} || { saved: {} }; process.chdir("/mnt/data"); null`,
  begin: (_, env) => `(() => {
  const session = ${nodeMark};
  if (!session) throw new Error("fenced: no session");
  for (const [name, value] of Object.entries(session.saved)) {
    if (value === undefined) delete process.env[name]; else process.env[name] = value;
  }
  session.saved = {};
  for (const [name, value] of Object.entries(${JSON.stringify(env)})) {
    session.saved[name] = process.env[name];
    process.env[name] = value;
  }
  return null;
})()`,
  isLost: (stderr) => stderr.includes("fenced: no session"),
  wrap: (code) => code,
};

const shell: PoolLanguage = {
  capabilities: { ...common, languages: ["bash"], stateful: false },
  install: undefined,
  begin: () => undefined,
  isLost: () => false,
  // A shell of its own for the block, so that its line numbers are right and it cannot end early what stands around it.
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

function quote(text: string): string {
  return `'${text.replaceAll("'", String.raw`'\''`)}'`;
}
