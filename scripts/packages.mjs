import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pnpm, root } from "./workspace.mjs";

/**
 * @typedef {object} Package
 * @property {string} name - `@fenced/core`
 * @property {string} folder - Absolute.
 * @property {string} tarball - Absolute path of what would be published.
 * @property {readonly string[]} dependencies - Names of its direct runtime dependencies.
 */

/**
 * Packs every publishable package as a release would, hands the tarballs to `use`, and removes them.
 *
 * @template T
 * @param {(packages: readonly Package[], folder: string) => Promise<T>} use - Also gets a temporary folder of its own.
 * @returns {Promise<T>}
 */
export async function withPackedPackages(use) {
  const temporary = mkdtempSync(join(tmpdir(), "fenced-pack-"));
  try {
    return await use(
      publishableFolders().map((folder) => pack(folder, temporary)),
      temporary,
    );
  } finally {
    rmSync(temporary, { recursive: true, force: true });
  }
}

/**
 * The package and those of ours that it needs, directly or through others.
 *
 * @param {Package} subject
 * @param {readonly Package[]} packages
 * @returns {Package[]}
 */
export function closure(subject, packages) {
  const found = new Set([subject]);
  for (const { dependencies } of found) {
    for (const other of packages) if (dependencies.includes(other.name)) found.add(other);
  }
  return [...found];
}

function publishableFolders() {
  const parent = join(root, "packages");
  return readdirSync(parent)
    .map((name) => join(parent, name))
    .filter((folder) => existsSync(join(folder, "package.json")) && manifestOf(folder).private !== true);
}

/**
 * @param {string} folder
 * @param {string} destination
 * @returns {Package}
 */
function pack(folder, destination) {
  const { name, dependencies = {} } = manifestOf(folder);
  if (!existsSync(join(folder, "dist"))) throw new Error(`${name} is not built. Run: pnpm build`);
  const before = new Set(readdirSync(destination));
  const { status, output } = pnpm(["pack", "--pack-destination", destination], folder);
  const tarball = readdirSync(destination).find((file) => !before.has(file));
  if (status !== 0 || tarball === undefined) throw new Error(`${name} cannot be packed.\n${output}`);
  return { name, folder, tarball: join(destination, tarball), dependencies: Object.keys(dependencies) };
}

/**
 * @typedef {object} Manifest
 * @property {string} name
 * @property {boolean} [private]
 * @property {Record<string, string>} [dependencies]
 */

/** @param {string} folder */
function manifestOf(folder) {
  return /** @type {Manifest} */ (JSON.parse(readFileSync(join(folder, "package.json"), "utf8")));
}
