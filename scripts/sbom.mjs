/**
 * Writes the software bill of materials of a release (CycloneDX 1.5, JSON): every published package, and everything that it
 * brings, in the versions that npm would install now. Needs a build.
 *
 *   npm run sbom -- fenced.cdx.json
 */
import { spawnSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { withPackedPackages } from "./packages.mjs";
import { helpIfAsked, userArguments, withoutUrls } from "./workspace.mjs";

/** @typedef {{ components: { externalReferences?: { url: string }[] }[] }} Bill */

helpIfAsked();
const [file] = userArguments();
if (file === undefined) throw new Error("Name the file to write: npm run sbom -- fenced.cdx.json");

await withPackedPackages(async (packages, temporary) => {
  const project = join(temporary, "fenced");
  mkdirSync(project);
  const tarballs = Object.fromEntries(packages.map(({ name, tarball }) => [name, `file:${tarball}`]));
  const version = packages[0]?.version;
  const manifest = { name: "fenced", version, private: true, dependencies: tarballs, overrides: tarballs };
  writeFileSync(join(project, "package.json"), JSON.stringify(manifest));
  npm(project, ["install", "--package-lock-only", "--ignore-scripts", "--no-audit", "--no-fund"]);
  const text = npm(project, ["sbom", "--package-lock-only", "--sbom-format=cyclonedx", "--sbom-type=library"]);
  const bill = /** @type {Bill} */ (JSON.parse(text));
  for (const { name } of packages) {
    if (!JSON.stringify(bill.components).includes(`"${name}"`)) throw new Error(`${name} is missing in the bill.`);
  }
  writeFileSync(resolve(file), `${withoutLocalPaths(bill)}\n`);
  console.log(`${file}: ${bill.components.length} components of ${packages.length} packages`);
});

/** @param {string} cwd @param {readonly string[]} args */
function npm(cwd, args) {
  const { status, stdout, stderr } = spawnSync("npm", args, {
    cwd,
    encoding: "utf8",
    shell: process.platform === "win32",
    maxBuffer: 64 * 1024 * 1024,
  });
  if (status !== 0) throw new Error(`npm ${args[0]} failed.\n${withoutUrls(`${stdout}${stderr}`)}`);
  return stdout;
}

/**
 * Where our tarballs lay when the bill was written means nothing to its readers.
 *
 * @param {Bill} bill
 */
function withoutLocalPaths(bill) {
  for (const component of bill.components) {
    const { externalReferences = [] } = component;
    component.externalReferences = externalReferences.filter(({ url }) => !url.startsWith("file:"));
  }
  return JSON.stringify(bill, undefined, 2);
}
