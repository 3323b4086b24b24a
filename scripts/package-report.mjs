/** What each package costs a user: size of its tarball and on disk, dependencies of its own, and all that come with it. */
import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { installAlone } from "./fresh-project.mjs";
import { withPackedPackages } from "./packages.mjs";

await withPackedPackages(async (packages, folder) => {
  const rows = [["package", "packed", "unpacked", "direct", "all", "node_modules"]];
  for (const subject of packages) {
    const project = await installAlone(subject, packages, folder);
    rows.push([
      subject.name,
      kilobytes(statSync(subject.tarball).size),
      kilobytes(sizeOf(join(project, "node_modules", subject.name))),
      String(subject.dependencies.length),
      String(installedPackages(project) - 1),
      kilobytes(sizeOf(join(project, "node_modules"))),
    ]);
  }
  print(rows);
});

/** @param {string} project */
function installedPackages(project) {
  const lockfile = /** @type {{ packages: Record<string, { optional?: boolean }> }} */ (
    JSON.parse(readFileSync(join(project, "node_modules", ".package-lock.json"), "utf8"))
  );
  return Object.keys(lockfile.packages).length;
}

/** @param {string} folder */
function sizeOf(folder) {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .reduce((sum, entry) => sum + statSync(join(entry.parentPath, entry.name)).size, 0);
}

/** @param {number} bytes */
function kilobytes(bytes) {
  return `${(bytes / 1024).toFixed(1)} KiB`;
}

/** @param {readonly string[][]} rows */
function print(rows) {
  const widths = rows[0]?.map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0))) ?? [];
  for (const row of rows) {
    const cells = row.map((cell, column) =>
      column === 0 ? cell.padEnd(widths[column] ?? 0) : cell.padStart(widths[column] ?? 0),
    );
    console.log(cells.join("  "));
  }
}
