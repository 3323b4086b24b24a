/**
 * Raises the range of each peer in this workspace to the version that it has now: `pnpm version-packages` runs this after Changesets,
 * which leaves a range alone that still contains the new version (docs/decisions/0009-versions.md).
 */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { manifestOf, publishableFolders } from "./packages.mjs";

const folders = publishableFolders();
const versions = new Map(folders.map(manifestOf).map(({ name, version }) => [name, version]));
for (const folder of folders) {
  const file = join(folder, "package.json");
  const text = readFileSync(file, "utf8");
  const raised = text.replaceAll(/"(@fenced\/[\w-]+)": "workspace:>=[\d.]+"/g, (whole, /** @type {string} */ name) =>
    versions.has(name) ? `"${name}": "workspace:>=${versions.get(name)}"` : whole,
  );
  if (raised !== text) writeFileSync(file, raised);
}
