import { execFile } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { closure, type Package } from "./packages.mjs";
import { pnpmCommand, root } from "./workspace.mjs";

export type PackageManager = "npm" | "pnpm";

const run = promisify(execFile);
const [pnpm, ...pnpmArguments] = pnpmCommand();
const quiet = ["--ignore-scripts", "--prefer-offline", "--loglevel=error"];
const installCommands: Readonly<Record<PackageManager, readonly [string, ...string[]]>> = {
  npm: ["npm", "install", "--no-audit", "--no-fund", ...quiet],
  // Without hoisting, a package finds only what its own manifest names.
  pnpm: [
    pnpm,
    ...pnpmArguments,
    "install",
    "--ignore-workspace",
    "--no-frozen-lockfile",
    "--config.hoist=false",
    ...quiet,
  ],
};

/**
 * An empty project into which packages are installed as a user would do it: ours from their tarballs, everything else from
 * the registry, in the newest versions that the manifests allow.
 */
export class FreshProject {
  readonly folder: string;
  readonly #manager: PackageManager;
  readonly #packages: readonly Package[];
  readonly #dependencies: Record<string, string> = {};

  constructor(parent: string, manager: PackageManager, packages: readonly Package[]) {
    this.folder = mkdtempSync(join(parent, `${manager}-project-`));
    this.#manager = manager;
    this.#packages = packages;
  }

  /** Adds packages, ours by name and others with a version range (`{ "@fenced/core": "*", tsx: "^4.0.0" }`). */
  async install(dependencies: Readonly<Record<string, string>>): Promise<void> {
    if (Object.keys(dependencies).every((name) => name in this.#dependencies)) return;
    const tarballs = this.#packages.filter(({ name }) => name in dependencies);
    Object.assign(this.#dependencies, dependencies, fileSpecifiers(tarballs));
    const asked = this.#packages.filter(({ name }) => name in this.#dependencies);
    const overrides = fileSpecifiers(asked.flatMap((subject) => closure(subject, this.#packages)));
    const manifest = {
      private: true,
      type: "module",
      dependencies: this.#dependencies,
      overrides,
      pnpm: { overrides },
    };
    writeFileSync(join(this.folder, "package.json"), JSON.stringify(manifest));
    const [program, ...args] = installCommands[this.#manager];
    try {
      await run(program, args, { cwd: this.folder, shell: process.platform === "win32" });
    } catch (error) {
      throw new Error(`${this.#manager} could not install it.\n${outputOf(error)}`, { cause: error });
    }
  }

  /** The names of all installed packages, including indirect dependencies. */
  installedPackages(): string[] {
    const modules = join(this.folder, "node_modules");
    if (this.#manager === "pnpm") {
      const names = readdirSync(join(modules, ".pnpm")).map((entry) => /^(@?[^@]+)@/.exec(entry)?.[1]);
      return unique(names.map((name) => name?.replace("+", "/")));
    }
    const lockfile = JSON.parse(readFileSync(join(modules, ".package-lock.json"), "utf8")) as {
      packages: Record<string, unknown>;
    };
    return unique(Object.keys(lockfile.packages).map((path) => path.split("node_modules/").at(-1)));
  }

  /**
   * Imports a package in a separate Node process, and waits for the process to end on its own.
   *
   * @returns The names that it exports.
   */
  async import(name: string): Promise<string[]> {
    const program = `console.log(JSON.stringify(Object.keys(await import(${JSON.stringify(name)}))))`;
    const { stdout } = await run(process.execPath, ["--input-type=module", "--eval", program], {
      cwd: this.folder,
      timeout: 30_000,
    });
    return JSON.parse(stdout) as string[];
  }

  /**
   * Type-checks files and our declarations that they import, without the types of this workspace other than Node's: a type
   * from a package that is not a dependency is reported as missing.
   */
  async typeCheck(files: readonly string[]): Promise<void> {
    const compilerOptions = {
      target: "es2023",
      lib: ["es2023", "esnext.disposable"],
      module: "nodenext",
      strict: true,
      exactOptionalPropertyTypes: true,
      allowImportingTsExtensions: true,
      noEmit: true,
      typeRoots: [join(root, "node_modules", "@types")],
      types: ["node"],
    };
    writeFileSync(join(this.folder, "tsconfig.json"), JSON.stringify({ compilerOptions, files }));
    const compiler = join(root, "node_modules", "typescript", "bin", "tsc");
    try {
      await run(process.execPath, [compiler, "--pretty", "false"], { cwd: this.folder });
    } catch (error) {
      // Errors in other people's declarations are not ours to report.
      const errors = outputOf(error).split(/\n(?! )/);
      const ours = errors.filter((each) => !/^node_modules\/(?!@fenced\/|\.pnpm\/@fenced\+)/.test(each.trim()));
      if (ours.some((each) => each.includes("error TS"))) throw new Error(ours.join("\n"), { cause: error });
    }
  }

  /** Runs a command that a package installed and throws its output if it fails. */
  async runCommand(name: string, args: readonly string[]): Promise<void> {
    const path = join(this.folder, "node_modules", ".bin", name);
    try {
      await run(path, args, { cwd: this.folder, timeout: 30_000, shell: process.platform === "win32" });
    } catch (error) {
      throw new Error(`${name} ${args.join(" ")} failed.\n${outputOf(error)}`, { cause: error });
    }
  }

  /** Runs a TypeScript program of the project and throws its output if it fails. */
  async run(file: string): Promise<void> {
    // pnpm's commands set NODE_PATH, which makes packages resolve that the project has not installed.
    const { NODE_PATH: _, ...env } = process.env;
    try {
      await run(process.execPath, ["--import", import.meta.resolve("tsx"), file], {
        cwd: this.folder,
        env,
        timeout: 120_000,
      });
    } catch (error) {
      throw new Error(`${file} failed.\n${outputOf(error)}`, { cause: error });
    }
  }
}

function fileSpecifiers(packages: readonly Package[]): Record<string, string> {
  return Object.fromEntries(packages.map(({ name, tarball }) => [name, `file:${tarball}`]));
}

function unique(names: readonly (string | undefined)[]): string[] {
  return [...new Set(names.filter((name) => name !== undefined))].filter((name) => name !== "");
}

function outputOf(error: unknown): string {
  const { stdout = "", stderr = "", message } = error as { stdout?: string; stderr?: string; message: string };
  return `${stdout}${stderr}` === "" ? message : `${stdout}${stderr}`;
}
