import { readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { FreshProject } from "./fresh-project.ts";
import { readSection, readTable, renderTable, replaceSection } from "./markdown-table.mjs";
import type { Package } from "./packages.mjs";
import { root } from "./workspace.mjs";

/** What a package costs its user. */
export interface Measures {
  readonly subject: Package;
  /** Bytes of the tarball. */
  readonly packed: number;
  /** Bytes of `node_modules` after the package was installed alone. */
  readonly installed: number;
  /** How many packages come with it. */
  readonly brought: number;
}

const document = join(root, "docs", "packages.md");
const section = "packages";
const head = ["package", "packed", "installed", "packages", "dependencies of its own", "optional"];

/** The columns that releases of other packages change. */
const measuredColumns = new Set(["packed", "installed", "packages"]);

/** Measures a project in which only the package is installed. */
export function measure(subject: Package, project: FreshProject): Measures {
  return {
    subject,
    packed: statSync(subject.tarball).size,
    installed: sizeOf(join(project.folder, "node_modules")),
    brought: project.installedPackages().length - 1,
  };
}

export function printTable(measures: readonly Measures[]): void {
  console.log(`\n${renderTable([head, ...measures.map(row)])}`);
}

/** Writes the table of all packages; rows of packages that were not measured stay. */
export function writeTable(packages: readonly Package[], measures: readonly Measures[]): void {
  const text = readFileSync(document, "utf8");
  const written = readTable(readSection(text, section));
  const rows = packages.flatMap(({ name }) => {
    const measured = measures.find(({ subject }) => subject.name === name);
    return measured === undefined ? written.filter(([cell]) => cell === quoted(name)) : [row(measured)];
  });
  writeFileSync(document, replaceSection(text, section, renderTable([head, ...rows])));
}

/**
 * Compares the table in `docs/packages.md` with what was measured: packages and their dependencies must be the same. Sizes
 * and numbers of packages are not compared, since releases of other packages change them from one day to the next.
 *
 * @returns The problems, one sentence per package.
 */
export function checkTable(packages: readonly Package[], measures: readonly Measures[]): string[] {
  const written = readTable(readSection(readFileSync(document, "utf8"), section));
  const gone = written
    .filter(([name]) => !packages.some((subject) => quoted(subject.name) === name))
    .map(([name]) => `${name} is in the table but not in packages/`);
  const different = measures.flatMap((measured) => {
    const wanted = row(measured);
    const cells = written.find(([name]) => name === wanted[0]) ?? [];
    const wrong = head.filter((title, column) => !measuredColumns.has(title) && wanted[column] !== cells[column]);
    return wrong.length === 0 ? [] : [`${measured.subject.name}: ${wrong.join(", ")}`];
  });
  return [...gone, ...different];
}

function row({ subject, packed, installed, brought }: Measures): string[] {
  const [dependencies, optional] = [subject.dependencies, subject.optionalPeers].map((names) =>
    names.map((name) => quoted(name)).join(", "),
  );
  return [
    quoted(subject.name),
    `${Math.round(packed / 1024)} KiB`,
    `${(installed / 1024 / 1024).toFixed(1)} MiB`,
    String(brought),
    dependencies ?? "",
    optional ?? "",
  ];
}

function quoted(name: string): string {
  return `\`${name}\``;
}

function sizeOf(folder: string): number {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .reduce((sum, entry) => sum + statSync(join(entry.parentPath, entry.name)).size, 0);
}
