import { execFile } from "node:child_process";
import { mkdtempSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { closure } from "./packages.mjs";
import { root } from "./workspace.mjs";

const run = promisify(execFile);

/**
 * Installs a packed package with npm into an empty project, as a user would; those of ours that it needs come from their
 * tarballs, too, everything else from the registry.
 *
 * @param {import("./packages.mjs").Package} subject
 * @param {readonly import("./packages.mjs").Package[]} packages
 * @param {string} parent - The folder to make the project in.
 * @returns {Promise<string>} The project's folder.
 */
export async function installAlone(subject, packages, parent) {
  const project = mkdtempSync(join(parent, "project-"));
  const manifest = {
    private: true,
    type: "module",
    dependencies: tarballs([subject]),
    overrides: tarballs(closure(subject, packages).filter(({ name }) => name !== subject.name)),
  };
  writeFileSync(join(project, "package.json"), JSON.stringify(manifest));
  const installCommand = [
    "install",
    "--no-audit",
    "--no-fund",
    "--ignore-scripts",
    "--prefer-offline",
    "--loglevel=error",
  ];
  await run("npm", installCommand, { cwd: project, shell: process.platform === "win32" });
  return project;
}

/**
 * Imports a package in a project, in a Node process of its own, and waits for that to end by itself.
 *
 * @param {string} name
 * @param {string} project
 * @returns {Promise<string[]>} The names that it exports.
 */
export async function importIn(name, project) {
  const program = `console.log(JSON.stringify(Object.keys(await import(${JSON.stringify(name)}))))`;
  const { stdout } = await run(process.execPath, ["--input-type=module", "--eval", program], {
    cwd: project,
    timeout: 30_000,
  });
  return /** @type {string[]} */ (JSON.parse(stdout));
}

/**
 * Checks a package's declarations in a project, with the compiler but none of the types that this workspace has besides
 * Node's: a type that comes from a package which is no dependency would be found missing.
 *
 * @param {string} name
 * @param {string} project
 */
export async function typeCheckIn(name, project) {
  writeFileSync(join(project, "main.ts"), `import * as all from ${JSON.stringify(name)};\nconsole.log(all);\n`);
  const compilerOptions = {
    target: "es2023",
    lib: ["es2023", "esnext.disposable"],
    module: "nodenext",
    strict: true,
    exactOptionalPropertyTypes: true,
    noEmit: true,
    typeRoots: [join(root, "node_modules", "@types")],
    types: ["node"],
  };
  writeFileSync(join(project, "tsconfig.json"), JSON.stringify({ compilerOptions, files: ["main.ts"] }));
  const compiler = join(root, "node_modules", "typescript", "bin", "tsc");
  try {
    await run(process.execPath, [compiler, "--pretty", "false"], { cwd: project });
  } catch (error) {
    const { stdout } = /** @type {{ stdout: string }} */ (error);
    // Errors in other people's declarations are not ours to report.
    const ours = stdout.split("\n").filter((line) => /^(?:main\.ts|node_modules\/@fenced\/)/.test(line));
    if (ours.length > 0) throw new Error(ours.join("\n"), { cause: error });
  }
}

/**
 * @param {readonly import("./packages.mjs").Package[]} packages
 * @returns {Record<string, string>}
 */
function tarballs(packages) {
  return Object.fromEntries(packages.map(({ name, tarball }) => [name, `file:${tarball}`]));
}
