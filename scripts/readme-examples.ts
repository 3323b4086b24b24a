import { cpSync, existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { builtinModules } from "node:module";
import { basename, join, posix } from "node:path";
import { findFences, namedRegion } from "./fences.mjs";
import { manifestOf } from "./packages.mjs";
import { root } from "./workspace.mjs";

/** The examples in a package's README, and what they need to run. */
export interface ReadmeExamples {
  /** The TypeScript fences as a reader would paste them; one without imports continues the previous fence. */
  readonly pastes: readonly string[];
  /** The examples from which the fences are cut, including set-up and assertions: `quick-start.ts`. */
  readonly files: readonly string[];
  /** Files of projects in folders, such as `conformance/test/conformance.test.ts`, of which the fences show a part. */
  readonly projectFiles: readonly string[];
  /** Packages with the versions to install for both. */
  readonly dependencies: Readonly<Record<string, string>>;
  /** Packages that the fences import and that no `npm install` in the README names. */
  readonly notInstalled: readonly string[];
}

/** Reads the examples of a package's README. */
export function readmeExamples(packageFolder: string): ReadmeExamples {
  const { pastes, shownTexts, regionFiles, commands } = readFences(join(packageFolder, "README.md"));
  const named = Object.fromEntries(commands.flatMap(({ packages }) => packages));
  const asked = commands.flatMap(({ always, packages }) => (always ? packages.map(([name]) => name) : []));
  const files = [...new Set(regionFiles.map(runnerOf))];
  const shown = shownTexts.flatMap(importedPackages);
  const projectFiles = [...new Set(regionFiles.flatMap(neighbours))];
  const used = [...files.flatMap(withImports), ...projectFiles].flatMap((file) => importedPackages(readExample(file)));
  const ranges = manifestOf(join(root, "examples")).dependencies ?? {};
  const wanted = [...new Set([...asked, ...shown, ...used])].filter((name) => !name.startsWith("@fenced/test-support"));
  return {
    pastes,
    files,
    projectFiles,
    dependencies: Object.fromEntries(wanted.map((name) => [name, named[name] ?? ranges[name] ?? "latest"])),
    notInstalled: [...new Set(shown)].filter((name) => !(name in named)),
  };
}

/**
 * Copies the examples into a project, together with the servers of `test-support`, which is not published. The project
 * installs the packages that they import.
 */
export function copyExamples(project: string): void {
  const skipped = ["node_modules", "package.json", "tsconfig.json"];
  for (const folder of ["examples", "test-support"]) {
    cpSync(join(root, folder), join(project, folder), {
      recursive: true,
      filter: (source) => !skipped.includes(basename(source)),
    });
  }
  for (const file of typeScriptFiles(join(project, "examples"))) {
    const path = join(project, "examples", file);
    const support = `${"../".repeat(file.split("/").length)}test-support`;
    const source = readFileSync(path, "utf8");
    writeFileSync(path, source.replaceAll(/"@fenced\/test-support\/([\w-]+)"/g, `"${support}/$1.ts"`));
  }
}

/** The source of an example, by its path below `examples`. */
export function readExample(file: string): string {
  return readFileSync(join(root, "examples", file), "utf8");
}

interface InstallCommand {
  /** A command with a comment is for some readers only: `npm install dockerode # for a server in Docker only`. */
  readonly always: boolean;
  readonly packages: readonly (readonly [name: string, range: string | undefined])[];
}

function readFences(readme: string) {
  const pastes: string[] = [];
  const shownTexts: string[] = [];
  const regionFiles: string[] = [];
  const commands: InstallCommand[] = [];
  const lines = readFileSync(readme, "utf8").split("\n");
  for (const { language, comment, line, end } of findFences(lines)) {
    const text = lines.slice(line + 1, end);
    const named = namedRegion(comment);
    if (language === "sh") commands.push(...text.flatMap(installCommand));
    if (language !== "ts" || named === undefined) continue;
    const file = named.file.replace("examples/", "");
    regionFiles.push(file);
    shownTexts.push(text.join("\n"));
    // A file in a subfolder belongs to a project, and is not a program to paste.
    if (file.includes("/")) continue;
    if (/^import /m.test(text.join("\n"))) pastes.push(text.join("\n"));
    else pastes.push([pastes.pop() ?? "", ...text].join("\n"));
  }
  return { pastes, shownTexts, regionFiles, commands };
}

function installCommand(line: string): InstallCommand[] {
  const [command = "", comment] = line.split(" #");
  const [, names] = /^npm install (.+)$/.exec(command.trim()) ?? [];
  if (names === undefined) return [];
  const specifiers = names.split(" ").filter((word) => word !== "" && !word.startsWith("-"));
  const packages = specifiers.map((word) => {
    const [, name = word, range] = /^(@?[^@]+)(?:@(.+))?$/.exec(word) ?? [];
    return [name, range] as const;
  });
  return [{ always: comment === undefined, packages }];
}

/** The example that runs a file: itself or, for a file of a project in a folder, the one that its first comment names. */
function runnerOf(file: string): string {
  if (!file.includes("/")) return file;
  const runner = /^\/\/ run by: ([\w-]+\.ts)$/m.exec(readExample(file))?.[1];
  if (runner === undefined) throw new Error(`examples/${file} has no line "// run by: example.ts".`);
  return runner;
}

/** The files of the project that a file belongs to. */
function neighbours(file: string): string[] {
  const [folder = "", ...rest] = file.split("/");
  if (rest.length === 0 || !existsSync(join(root, "examples", folder))) return [];
  return typeScriptFiles(join(root, "examples", folder)).map((name) => `${folder}/${name}`);
}

/** An example and the files of `examples/support` that it imports, directly or indirectly. */
function withImports(file: string): string[] {
  const found = new Set([file]);
  for (const each of found) {
    for (const [, path = ""] of readExample(each).matchAll(/^(?:import|\}) [^"\n]*from "(\.[^"]+)"/gm)) {
      found.add(posix.join(posix.dirname(each), path));
    }
  }
  return [...found];
}

function typeScriptFiles(folder: string): string[] {
  return readdirSync(folder, { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".ts") && !name.includes("node_modules"))
    .map((name) => name.replaceAll("\\", "/"));
}

/** The names of the packages that a program imports. */
function importedPackages(source: string): string[] {
  return [...source.matchAll(/^(?:import|export|\}) [^"\n]*from "((?!\.|node:)(?:@[^/"]+\/)?[^/"]+)/gm)]
    .map(([, name = ""]) => name)
    .filter((name) => name !== "" && !builtinModules.includes(name));
}
