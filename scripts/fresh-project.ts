import { execFile, execFileSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { closure, type Package } from "./packages.mjs";
import { pnpmCommand, root } from "./workspace.mjs";

export type PackageManager = "npm" | "pnpm" | "yarn";

const run = promisify(execFile);
const [pnpm, ...pnpmArguments] = pnpmCommand();
/** Yarn with Plug'n'Play, as a package of npm. */
export const yarnVersion = "4.18.1";
const yarnCommand: readonly [string, ...string[]] = ["npx", "-y", "-p", `@yarnpkg/cli-dist@${yarnVersion}`, "yarn"];
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
  yarn: [...yarnCommand, "install", "--mode=skip-build"],
};

/** How to run a command. */
export interface CommandOptions {
  /** Variables besides those of this process. */
  readonly env?: Readonly<Record<string, string>>;
  /** Default: 30 seconds. */
  readonly timeoutMs?: number;
}

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

  /**
   * Adds packages, ours by name and others with a version range (`{ "@fenced/core": "*", tsx: "^4.0.0" }`).
   *
   * @param fields - more of the manifest.
   */
  async install(
    dependencies: Readonly<Record<string, string>>,
    fields: Readonly<Record<string, unknown>> = {},
  ): Promise<void> {
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
      resolutions: overrides,
      ...fields,
    };
    writeFileSync(join(this.folder, "package.json"), JSON.stringify(manifest));
    if (this.#manager === "yarn") writeFileSync(join(this.folder, ".yarnrc.yml"), yarnSettings());
    const [program, ...args] = installCommands[this.#manager];
    try {
      await run(program, args, { cwd: this.folder, shell: process.platform === "win32" });
    } catch (error) {
      throw new Error(`${this.#manager} could not install it.\n${outputOf(error)}`, { cause: error });
    }
  }

  /** Runs the install scripts of some packages of a project with npm, which are not run otherwise. */
  async runInstallScripts(...names: readonly string[]): Promise<void> {
    try {
      await run("npm", ["rebuild", ...names], { cwd: this.folder, shell: process.platform === "win32" });
    } catch (error) {
      throw new Error(`npm could not run the install scripts of ${names.join(", ")}.\n${outputOf(error)}`, {
        cause: error,
      });
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
   *
   * @param compiler - the folder of a version of TypeScript.
   */
  async typeCheck(files: readonly string[], compiler = join(root, "node_modules", "typescript")): Promise<void> {
    const compilerOptions = {
      // The newest that TypeScript 5.4 knows.
      target: "es2022",
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
    try {
      await run(process.execPath, [join(compiler, "bin", "tsc"), "--pretty", "false"], { cwd: this.folder });
    } catch (error) {
      // Errors in other people's declarations are not ours to report.
      const errors = outputOf(error).split(/\n(?! )/);
      const ours = errors.filter((each) => !/^node_modules\/(?!@fenced\/|\.pnpm\/@fenced\+)/.test(each.trim()));
      if (ours.some((each) => each.includes("error TS"))) throw new Error(ours.join("\n"), { cause: error });
    }
  }

  /**
   * Runs a command that a package installed, and throws its output if it fails; with Yarn, also `node`.
   *
   * @returns what it printed.
   */
  async runCommand(name: string, args: readonly string[], options: CommandOptions = {}): Promise<string> {
    const { env = {}, timeoutMs = 30_000 } = options;
    const installed = [join(this.folder, "node_modules", ".bin", name)] as const;
    const [program, ...first] = this.#manager === "yarn" ? [...yarnCommand, name] : installed;
    try {
      const { stdout } = await run(program, [...first, ...args], {
        cwd: this.folder,
        env: { ...process.env, ...env },
        timeout: timeoutMs,
        shell: process.platform === "win32",
      });
      return stdout;
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

/** Yarn does not read npm's settings. */
function yarnSettings(): string {
  const registry = execFileSync("npm", ["config", "get", "registry"], { encoding: "utf8" }).trim();
  const settings = {
    nodeLinker: "pnp",
    npmRegistryServer: registry,
    // Otherwise our packages stay in the user's cache, and a run in CI refuses to write the lockfile.
    enableGlobalCache: false,
    enableImmutableInstalls: false,
    enableTelemetry: false,
  };
  return Object.entries(settings)
    .map(([name, value]) => `${name}: ${JSON.stringify(value)}\n`)
    .join("");
}

function unique(names: readonly (string | undefined)[]): string[] {
  return [...new Set(names.filter((name) => name !== undefined))].filter((name) => name !== "");
}

function outputOf(error: unknown): string {
  const { stdout = "", stderr = "", message } = error as { stdout?: string; stderr?: string; message: string };
  return `${stdout}${stderr}` === "" ? message : `${stdout}${stderr}`;
}
