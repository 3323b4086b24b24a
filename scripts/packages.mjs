import { execFileSync } from "node:child_process";
import { cpSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pnpm, root } from "./workspace.mjs";

/**
 * @typedef {object} Manifest
 * @property {string} name
 * @property {string} version
 * @property {boolean} [private]
 * @property {Record<string, string>} [bin]
 * @property {Record<string, unknown>} exports
 * @property {Record<string, string>} [dependencies]
 * @property {Record<string, string>} [peerDependencies]
 * @property {Record<string, { optional?: boolean }>} [peerDependenciesMeta]
 */

/**
 * @typedef {object} Package
 * @property {string} name - `@fenced/core`
 * @property {string} version
 * @property {string} folder - Absolute.
 * @property {string} tarball - Absolute path of what would be published.
 * @property {readonly string[]} dependencies - Names of the packages installed with it: dependencies, and peers that are not optional.
 * @property {readonly string[]} commands - The names of the programs that it installs.
 * @property {readonly string[]} optionalPeers - Names of packages that it uses if the user has installed them.
 */

/**
 * Packs every publishable package as a release would, passes the tarballs to `use`, and removes them. This workspace's tarballs
 * are taken from the folder in FENCED_TARBALLS if `scripts/pack.mjs` has packed them there.
 *
 * @template T
 * @param {(packages: readonly Package[], folder: string) => Promise<T>} use - Also receives a temporary folder.
 * @param {string} [workspace] - The folder of the workspace: this one, or a clone.
 * @returns {Promise<T>}
 */
export async function withPackedPackages(use, workspace = root) {
  const temporary = mkdtempSync(join(tmpdir(), "fenced-pack-"));
  try {
    const shared = process.env.FENCED_TARBALLS;
    const packed = workspace === root && shared !== undefined && existsSync(shared);
    return await use(packed ? packagesIn(shared, workspace) : packAll(workspace, temporary), temporary);
  } finally {
    rmSync(temporary, { recursive: true, force: true });
  }
}

/**
 * The package and those of ours that it needs, directly or indirectly.
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

/**
 * Copies the working tree, including uncommitted changes but without ignored files.
 *
 * @param {string} folder
 */
export function copyWorkingTree(folder) {
  // In a container the checkout may belong to another user, which git accepts only if told to.
  const words = ["-c", "safe.directory=*", "ls-files", "-z", "--cached", "--others", "--exclude-standard"];
  const listed = execFileSync("git", words, { cwd: root, encoding: "utf8", maxBuffer: 64 * 1024 * 1024 });
  for (const file of listed.split("\0")) {
    if (file === "" || !existsSync(join(root, file))) continue;
    cpSync(join(root, file), join(folder, file), { verbatimSymlinks: true });
  }
}

/**
 * The folders of the packages that are published.
 *
 * @param {string} [workspace]
 */
export function publishableFolders(workspace = root) {
  const parent = join(workspace, "packages");
  return readdirSync(parent)
    .map((name) => join(parent, name))
    .filter((folder) => existsSync(join(folder, "package.json")) && manifestOf(folder).private !== true);
}

/**
 * @param {string} folder
 * @returns {Manifest}
 */
export function manifestOf(folder) {
  return /** @type {Manifest} */ (JSON.parse(readFileSync(join(folder, "package.json"), "utf8")));
}

/**
 * Packs every publishable package of a workspace, as a release would.
 *
 * @param {string} workspace
 * @param {string} destination
 * @returns {Package[]}
 */
export function packAll(workspace, destination) {
  const folders = publishableFolders(workspace);
  for (const folder of folders) {
    const isBuilt = existsSync(join(folder, "dist"));
    if (!isBuilt) throw new Error(`${manifestOf(folder).name} is not built. Run: npm run build`);
  }
  const filters = folders.map((folder) => `--filter=${manifestOf(folder).name}`);
  const { status, output } = pnpm(["--recursive", ...filters, "pack", "--pack-destination", destination], workspace);
  if (status !== 0) throw new Error(`The packages could not be packed.\n${output}`);
  return packagesIn(destination, workspace);
}

/**
 * @param {string} destination
 * @param {string} workspace
 * @returns {Package[]}
 */
function packagesIn(destination, workspace) {
  return publishableFolders(workspace).map((folder) => {
    const {
      name,
      version,
      bin = {},
      dependencies = {},
      peerDependencies = {},
      peerDependenciesMeta = {},
    } = manifestOf(folder);
    const tarball = join(destination, `${name.replace("@", "").replace("/", "-")}-${version}.tgz`);
    if (!existsSync(tarball)) throw new Error(`${name} was not packed: there is no ${tarball}.`);
    const peers = Object.keys(peerDependencies);
    const optionalPeers = peers.filter((peer) => peerDependenciesMeta[peer]?.optional === true);
    const requiredPeers = peers.filter((peer) => !optionalPeers.includes(peer));
    return {
      name,
      version,
      folder,
      tarball,
      commands: Object.keys(bin),
      dependencies: [...Object.keys(dependencies), ...requiredPeers],
      optionalPeers,
    };
  });
}
