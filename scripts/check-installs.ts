/**
 * Each package, installed alone from its tarball into an empty project, with npm and with pnpm: it can be imported, its
 * commands start, its types check, it brings no dependency of an executor that it does not use, and what its README shows
 * runs there. Prints what each costs, and holds the table in `docs/packages.md` to that; `--write` writes the table. Other
 * arguments are parts of names: then only those packages are checked, and only their rows written.
 */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { needsOf } from "./example-needs.ts";
import { FreshProject, type PackageManager } from "./fresh-project.ts";
import { checkTable, measure, printTable, writeTable, type Measures } from "./package-table.ts";
import { closure, withPackedPackages, type Package } from "./packages.mjs";
import { copyExamples, readExample, readmeExamples } from "./readme-examples.ts";
import { withoutUrls } from "./workspace.mjs";

const managers = ["npm", "pnpm"] as const satisfies readonly PackageManager[];
const write = process.argv.includes("--write");
const parts = process.argv.slice(2).filter((argument) => argument !== "--write");

await withPackedPackages(async (packages, folder) => {
  const measures: Measures[] = [];
  for (const subject of packages) {
    if (parts.length > 0 && !parts.some((part) => subject.name.includes(part))) continue;
    const [withNpm] = await Promise.all(managers.map((manager) => check(subject, manager, packages, folder)));
    if (withNpm !== undefined) measures.push(withNpm);
  }
  printTable(measures);
  if (write) writeTable(packages, measures);
  if (parts.length > 0) return;
  const problems = checkTable(packages, measures);
  if (problems.length > 0) fail("docs/packages.md", `${problems.join("\n")}\nRun: pnpm check:installs --write`);
});

/** Checks a package with one package manager, and says how it went. */
async function check(
  subject: Package,
  manager: PackageManager,
  packages: readonly Package[],
  folder: string,
): Promise<Measures | undefined> {
  const startedAt = Date.now();
  try {
    const project = new FreshProject(folder, manager, packages);
    await project.install({ [subject.name]: "*" });
    const measures = measure(subject, project);
    checkDependencies(subject, packages, project.installedPackages());
    const names = await project.import(subject.name);
    for (const command of subject.commands) await project.runCommand(command, ["--help"]);
    const ran = await checkReadme(subject, project);
    const seconds = ((Date.now() - startedAt) / 1000).toFixed(1);
    console.log(`ok      ${subject.name} with ${manager} (${seconds} s): ${names.length} exports${ran}`);
    return measures;
  } catch (error) {
    fail(`${subject.name} with ${manager}`, error instanceof Error ? error.message : String(error));
    return undefined;
  }
}

/**
 * Throws if an executor brings what only other executors need, also by way of the kit: dockerode without executor-docker,
 * undici without executor-aca or executor-jupyter. What is optional must not come by itself either.
 */
function checkDependencies(subject: Package, packages: readonly Package[], installed: readonly string[]): void {
  if (!isExecutor(subject)) return;
  const ours = closure(subject, packages);
  const core = ours.filter(({ name }) => name === "@fenced/core");
  const allowed = new Set([
    ...ours.map(({ name }) => name),
    ...[...core, subject].flatMap((each) => each.dependencies),
  ]);
  const foreign = packages
    .filter(isExecutor)
    .flatMap(({ name, dependencies, optionalPeers }) => [name, ...dependencies, ...optionalPeers])
    .filter((name) => !allowed.has(name) && installed.includes(name));
  if (foreign.length === 0) return;
  throw new Error(`It brings ${[...new Set(foreign)].join(", ")}, which it does not use and other executors do.`);
}

/** The kit and the test kit are no executors. */
function isExecutor({ name, dependencies }: Package): boolean {
  return name.startsWith("@fenced/executor-") && dependencies.includes("@fenced/executor-kit");
}

/**
 * Type-checks the package and what its README shows, and runs the latter.
 *
 * @returns What was run and skipped, to be shown.
 */
async function checkReadme(subject: Package, project: FreshProject): Promise<string> {
  const { pastes, files, projectFiles, dependencies, notInstalled } = readmeExamples(subject.folder);
  if (notInstalled.length > 0) {
    throw new Error(`Its README shows imports of ${notInstalled.join(", ")}, and no "npm install" that names them.`);
  }
  await project.install({ ...dependencies, [subject.name]: "*" });
  copyExamples(project.folder);
  const checked = projectFiles.map((file) => `examples/${file}`);
  const main = `import * as all from ${JSON.stringify(subject.name)};\nconsole.log(all);\n`;
  for (const [index, text] of [main, ...pastes].entries()) {
    checked.push(`paste-${index}.ts`);
    // A module of its own, even where the reader would paste it into one.
    writeFileSync(join(project.folder, `paste-${index}.ts`), `${text}\nexport {};\n`);
  }
  await project.typeCheck(checked);

  let report = "";
  for (const file of files) {
    const { missing, required } = needsOf(readExample(file));
    if (required) throw new Error(`${file} needs ${missing.join(", ")}`);
    if (missing.length === 0) await project.run(`examples/${file}`);
    report += missing.length === 0 ? `, ran ${file}` : `, skipped ${file}: needs ${missing.join(", ")}`;
  }
  return report;
}

function fail(name: string, reason: string): void {
  process.exitCode = 1;
  console.log(`FAILED  ${name}\n${withoutUrls(reason)}`);
}
