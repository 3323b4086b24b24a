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

type FactsOptions = Pick<EmulatorOptions, "packages"> & { readonly poolType: PoolType; readonly python: string };

/** Looks up the runtime and the packages of the pool's sessions, once and only on demand. */
export class RuntimeFacts {
  readonly #options: FactsOptions;
  #packages: Promise<readonly PackageInfo[]> | undefined;
  #runtime: Promise<string> | undefined;

  constructor(options: FactsOptions) {
    this.#options = options;
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
    if (this.#options.poolType === "NodeLTS") return process.versions.node;
    const script = "import platform; print(platform.python_version())";
    return (await promisify(execFile)(this.#options.python, ["-c", script], { cwd: "/" })).stdout.trim();
  }

  async #findPackages(): Promise<readonly PackageInfo[]> {
    const { packages, poolType, python } = this.#options;
    if (packages) return packages.map((name) => ({ name, version: "1.0.0" }));
    if (poolType !== "PythonLTS") return [];
    const { stdout } = await promisify(execFile)(python, ["-c", listPackages], { cwd: "/" });
    return stdout.split(/\r?\n/).flatMap((line) => {
      const [name, version] = line.split(" ");
      return name === undefined || version === undefined ? [] : { name, version };
    });
  }
}
