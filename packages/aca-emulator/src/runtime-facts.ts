import { execFile } from "node:child_process";
import { promisify } from "node:util";
import type { EmulatorOptions } from "./emulator-options.ts";
import type { PoolType } from "./sessions/session-process.ts";

/** A package of a session. */
export interface PackageInfo {
  readonly name: string;
  readonly version: string;
}

const listPackages = `import importlib.metadata as m
for d in m.distributions(): print(d.metadata["Name"], d.version)`;

/** Looks up the runtime and the packages of the pool's sessions, once and only on demand. */
export class RuntimeFacts {
  readonly #poolType: PoolType;
  readonly #python: string;
  readonly #given: readonly string[] | undefined;
  #packages: Promise<readonly PackageInfo[]> | undefined;
  #runtime: Promise<string> | undefined;

  constructor(options: Pick<EmulatorOptions, "packages"> & { readonly poolType: PoolType; readonly python: string }) {
    this.#poolType = options.poolType;
    this.#python = options.python;
    this.#given = options.packages;
  }

  packages(): Promise<readonly PackageInfo[]> {
    this.#packages ??= this.#findPackages();
    return this.#packages;
  }

  runtime(): Promise<string> {
    this.#runtime ??= this.#findRuntime();
    return this.#runtime;
  }

  async #findRuntime(): Promise<string> {
    if (this.#poolType === "NodeLTS") return process.versions.node;
    const script = "import platform; print(platform.python_version())";
    return (await promisify(execFile)(this.#python, ["-c", script], { cwd: "/" })).stdout.trim();
  }

  async #findPackages(): Promise<readonly PackageInfo[]> {
    if (this.#given) return this.#given.map((name) => ({ name, version: "1.0.0" }));
    if (this.#poolType !== "PythonLTS") return [];
    const { stdout } = await promisify(execFile)(this.#python, ["-c", listPackages], { cwd: "/" });
    return stdout.split(/\r?\n/).flatMap((line) => {
      const [name, version] = line.split(" ");
      return name === undefined || version === undefined ? [] : { name, version };
    });
  }
}
