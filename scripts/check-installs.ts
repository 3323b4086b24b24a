/**
 * Installs each package alone from its tarball into an empty project, with npm and with pnpm, and checks that it can be
 * imported, its commands start, its types check, it installs no dependency that only other executors use, and its README's
 * examples run. Prints what each costs, and compares the table in `docs/packages.md` with that; `--write` writes the table,
 * `--with=npm` leaves out pnpm, `--no-readme` the READMEs. Other arguments are parts of names: only matching packages are
 * checked, and only their rows written.
 *
 * `--together` takes a quarter of the processor time: it installs all packages into one pnpm project, in which each finds only
 * what its own manifest names, and checks that they can be imported, their commands start, and their types check.
 */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { needsOf } from "./example-needs.ts";
import { FreshProject, type PackageManager } from "./fresh-project.ts";
import { checkTable, measure, printTable, writeTable, type Measures } from "./package-table.ts";
import { closure, withPackedPackages, type Package } from "./packages.mjs";
import { copyExamples, readExample, readmeExamples } from "./readme-examples.ts";
import { commandLine, withoutUrls } from "./workspace.mjs";

const { values, positionals: parts } = commandLine({
  options: {
    together: { type: "boolean", default: false },
    write: { type: "boolean", default: false },
    readme: { type: "boolean", default: true },
    with: { type: "string", multiple: true },
  },
  allowPositionals: true,
  allowNegative: true,
});
const { write } = values;
const managers = (["npm", "pnpm"] as const).filter((name) => values.with?.includes(name) ?? true);
if (!managers.includes("npm")) throw new Error("--with must include npm, which measures the sizes.");

await withPackedPackages(values.together ? checkTogether : checkEach);

async function checkEach(packages: readonly Package[], folder: string): Promise<void> {
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
  if (problems.length > 0) fail("docs/packages.md", `${problems.join("\n")}\nRun: npm run check:installs -- --write`);
}

async function checkTogether(packages: readonly Package[], folder: string): Promise<void> {
  const project = new FreshProject(folder, "pnpm", packages);
  await project.install(Object.fromEntries(packages.map(({ name }) => [name, "*"])));
  for (const { name, commands } of packages) {
    try {
      const exported = await project.import(name);
      for (const command of commands) await project.runCommand(command, ["--help"]);
      console.log(`ok      ${name}: ${exported.length} exports`);
    } catch (error) {
      fail(name, messageOf(error));
    }
  }
  const all = packages.map(({ name }) => `import ${JSON.stringify(name)};\n`).join("");
  writeFileSync(join(project.folder, "all.ts"), all);
  await project.typeCheck(["all.ts"]).then(
    () => console.log("ok      types of all packages"),
    (error: unknown) => fail("types of all packages", messageOf(error)),
  );
}

/** Checks a package with one package manager, and prints the result. */
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
    const shown = values.readme ? await prepareReadme(subject, project) : { pastes: [], files: [], checked: [] };
    await checkTypes(subject, project, shown);
    const ran = await runExamples(shown.files, project);
    const seconds = ((Date.now() - startedAt) / 1000).toFixed(1);
    console.log(`ok      ${subject.name} with ${manager} (${seconds} s): ${names.length} exports${ran}`);
    return measures;
  } catch (error) {
    fail(`${subject.name} with ${manager}`, messageOf(error));
    return undefined;
  }
}

/**
 * Throws if an executor installs what only other executors need, even indirectly through the kit: dockerode without
 * executor-docker, undici without executor-aca or executor-jupyter. Optional packages must not be installed either.
 */
function checkDependencies(subject: Package, packages: readonly Package[], installed: readonly string[]): void {
  if (!isExecutor(subject)) return;
  const ours = closure(subject, packages);
  const core = ours.filter(({ name }) => name === "@fenced/core");
  const allowed = new Set([
    ...ours.map(({ name }) => name),
    ...[...core, subject].flatMap((each) => each.dependencies),
  ]);
  // A library may install a package that another executor uses; our own packages must not.
  const declared = new Set(ours.flatMap((each) => each.dependencies));
  const foreign = packages
    .filter(isExecutor)
    .flatMap(({ name, dependencies, optionalPeers }) => [
      ...dependencies.filter((each) => declared.has(each)),
      ...[name, ...optionalPeers].filter((each) => installed.includes(each)),
    ])
    .filter((name) => !allowed.has(name));
  if (foreign.length === 0) return;
  throw new Error(`It installs ${[...new Set(foreign)].join(", ")}, which only other executors use.`);
}

/** The kit and the test kit are not executors. */
function isExecutor({ name, dependencies }: Package): boolean {
  return name.startsWith("@fenced/executor-") && dependencies.includes("@fenced/executor-kit");
}

/** What a README shows. */
interface Shown {
  /** Pieces of code. */
  readonly pastes: readonly string[];
  /** Names of examples that are programs. */
  readonly files: readonly string[];
  /** Paths of examples in the project, including those that other examples import. */
  readonly checked: readonly string[];
}

/** Installs what a README's examples need, and copies them. */
async function prepareReadme(subject: Package, project: FreshProject): Promise<Shown> {
  const { pastes, files, projectFiles, dependencies, notInstalled } = readmeExamples(subject.folder);
  if (notInstalled.length > 0) {
    throw new Error(`Its README imports ${notInstalled.join(", ")}, but no "npm install" in it names them.`);
  }
  await project.install({ ...dependencies, [subject.name]: "*" });
  copyExamples(project.folder);
  return { pastes, files, checked: projectFiles.map((file) => `examples/${file}`) };
}

async function checkTypes(subject: Package, project: FreshProject, shown: Shown): Promise<void> {
  const main = `import * as all from ${JSON.stringify(subject.name)};\nconsole.log(all);\n`;
  const texts = [main, ...shown.pastes].map((text, index) => {
    // Makes it a module, even if a reader would paste it into one.
    writeFileSync(join(project.folder, `paste-${index}.ts`), `${text}\nexport {};\n`);
    return `paste-${index}.ts`;
  });
  await project.typeCheck([...shown.checked, ...texts]);
}

/** @returns A report on what was run and skipped. */
async function runExamples(files: readonly string[], project: FreshProject): Promise<string> {
  let report = "";
  for (const file of files) {
    const { missing, required } = needsOf(readExample(file));
    if (required) throw new Error(`${file} needs ${missing.join(", ")}`);
    if (missing.length === 0) await project.run(`examples/${file}`);
    report += missing.length === 0 ? `, ran ${file}` : `, skipped ${file}: needs ${missing.join(", ")}`;
  }
  return report;
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

function fail(name: string, reason: string): void {
  process.exitCode = 1;
  console.log(`FAILED  ${name}\n${withoutUrls(reason)}`);
}
