/** The files of a new executor's package, from `templates/executor`, a package that is checked like all others. */
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { root } from "./workspace.mjs";

/**
 * @typedef {object} Names
 * @property {string} kebab - `my-cloud`
 * @property {string} camel - `myCloud`
 * @property {string} pascal - `MyCloud`
 * @property {string} title - `My cloud`
 */

/**
 * @typedef {object} Manifest
 * @property {string} version
 * @property {string} description
 * @property {string[]} keywords
 * @property {Record<string, string>} dependencies
 * @property {Record<string, string>} devDependencies
 * @property {{ exports: unknown }} publishConfig
 * @property {Record<string, string>} scripts
 * @property {Record<string, string>} engines
 */

const template = join(root, "templates", "executor");
const standaloneTemplate = join(root, "templates", "standalone");
const artifacts = ["node_modules", "dist"];
const reserved = ["kit", "testkit"];
/** A placeholder for the package's name until all others are replaced: the name may itself contain a name of the template. */
const placeholder = "\u0000";

/**
 * @param {string} name - As a user gave it.
 * @returns {Names}
 * @throws if it is not a valid name for an executor.
 */
export function words(name) {
  const bare = name.replace(/^executor-/, "");
  const parts = bare.split("-");
  const possible = /^[a-z][a-z0-9]*(?:-[a-z0-9]+)*$/.test(bare) && bare.length <= 40 && !reserved.includes(bare);
  // The template's own name would be replaced.
  if (!possible || parts.includes("example")) {
    throw new Error(
      `"${name}" is not a valid name for an executor. Use at most 40 lowercase letters, digits and single hyphens, without "example": my-cloud.`,
    );
  }
  const [first = "", ...others] = parts;
  const capital = (/** @type {string} */ word) => `${word.charAt(0).toUpperCase()}${word.slice(1)}`;
  return {
    kebab: bare,
    camel: first + others.map(capital).join(""),
    pascal: parts.map(capital).join(""),
    title: [capital(first), ...others].join(" "),
  };
}

/**
 * Creates a package of this workspace.
 *
 * @param {Names} names
 * @param {string} folder
 */
export function makeExecutor(names, folder) {
  assertFree(folder);
  copy(template, folder, (text) => renamed(text, names, `@fenced/executor-${names.kebab}`));
  const manifest = readManifest(folder);
  Reflect.deleteProperty(manifest, "private");
  // The template's own tests are those of a package that it makes.
  Object.assign(manifest.scripts, {
    lint: `cd ../.. && oxlint packages/executor-${names.kebab}`,
    test: 'node ../../scripts/test-package.mjs "--exclude=**/conformance*"',
    "test:conformance": "node ../../scripts/test-package.mjs conformance",
  });
  writeJson(join(folder, "package.json"), manifest);
  const tsconfig = join(folder, "tsconfig.json");
  writeFileSync(tsconfig, readFileSync(tsconfig, "utf8").replaceAll("../../packages/", "../"));
}

/**
 * Creates a project that is independent of this workspace.
 *
 * @param {Names} names
 * @param {string} folder
 * @param {string} packageName
 */
export function makeStandalone(names, folder, packageName) {
  if (!/^(?:@[a-z0-9][\w.-]*\/)?[a-z0-9][\w.-]*$/.test(packageName)) {
    throw new Error(`"${packageName}" is not a valid package name. Use --package with a name that npm accepts.`);
  }
  assertFree(folder);
  copy(
    template,
    folder,
    (text) => renamed(text, names, packageName).replaceAll('"--conditions=@fenced/source", ', ""),
    // The author chooses the license.
    [...artifacts, "LICENSE"],
  );
  copy(standaloneTemplate, folder, (text) => text);
  writeJson(join(folder, "package.json"), standaloneManifest(readManifest(folder), packageName));
}

/**
 * @param {Manifest} manifest
 * @param {string} packageName
 */
function standaloneManifest(manifest, packageName) {
  const tools = readManifest(root).devDependencies;
  const published = (/** @type {string} */ dependency) =>
    `^${readManifest(join(root, "packages", dependency.replace("@fenced/", ""))).version}`;
  const { dependencies, devDependencies } = manifest;
  for (const each of [dependencies, devDependencies]) {
    for (const dependency of Object.keys(each)) {
      if (dependency.startsWith("@fenced/")) each[dependency] = published(dependency);
    }
  }
  for (const tool of ["@types/node", "tsx", "typescript", "vitest"]) devDependencies[tool] = tools[tool] ?? "*";
  return {
    name: packageName,
    version: "0.1.0",
    description: manifest.description,
    keywords: [...manifest.keywords, "fenced"],
    files: ["dist", "src"],
    type: "module",
    sideEffects: false,
    exports: manifest.publishConfig.exports,
    scripts: {
      build: "tsc",
      typecheck: "tsc --noEmit && tsc -p test",
      test: "vitest run",
      prepack: "npm run build",
    },
    dependencies,
    devDependencies,
    engines: manifest.engines,
  };
}

/**
 * @param {string} from
 * @param {string} to
 * @param {(text: string) => string} change - Also applied to paths.
 * @param {readonly string[]} leftOut - Names.
 */
function copy(from, to, change, leftOut = artifacts) {
  for (const name of readdirSync(from)) {
    if (leftOut.includes(name)) continue;
    const source = join(from, name);
    const target = join(to, name === "gitignore" ? ".gitignore" : change(name));
    if (statSync(source).isDirectory()) {
      copy(source, target, change, leftOut);
    } else {
      mkdirSync(dirname(target), { recursive: true });
      writeFileSync(target, change(readFileSync(source, "utf8")));
    }
  }
}

/**
 * @param {string} text
 * @param {Names} names
 * @param {string} packageName
 */
function renamed(text, { kebab, camel, pascal, title }, packageName) {
  return text
    .replaceAll("@fenced/executor-example", placeholder)
    .replaceAll("executor-example", `executor-${kebab}`)
    .replaceAll("example-", `${kebab}-`)
    .replaceAll(/\bExample(?=[A-Z])/g, pascal)
    .replaceAll(/\bexample(?=[A-Z])/g, camel)
    .replaceAll(/\bExample\b/g, title)
    .replaceAll(placeholder, () => packageName);
}

/** @param {string} folder */
function assertFree(folder) {
  if (existsSync(folder) && (!statSync(folder).isDirectory() || readdirSync(folder).length > 0)) {
    throw new Error(`${folder} exists already and is not empty. Choose another name or directory.`);
  }
}

/** @param {string} folder */
function readManifest(folder) {
  return /** @type {Manifest} */ (JSON.parse(readFileSync(join(folder, "package.json"), "utf8")));
}

/**
 * @param {string} file
 * @param {unknown} value
 */
function writeJson(file, value) {
  writeFileSync(file, `${JSON.stringify(value, undefined, 2)}\n`);
}
