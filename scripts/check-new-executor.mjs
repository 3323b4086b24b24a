/**
 * Checks that `pnpm new executor` creates working packages: one outside the repository, which is installed from the tarballs
 * that a release would publish, built, and run through the conformance suite; and one in a copy of the workspace, which must
 * pass the workspace's own checks. `--inside` leaves out the first one.
 */
import { spawnSync } from "node:child_process";
import { existsSync, lstatSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { copyWorkingTree, withPackedPackages } from "./packages.mjs";
import { pnpm, root, withoutUrls } from "./workspace.mjs";

const stepMinutes = 10;
// Test runs in here must not write to the report of the run that this is a part of.
const { FENCED_TEST_REPORT: _, FENCED_REQUIRE: __, ...environment } = process.env;
const temporary = mkdtempSync(join(tmpdir(), "fenced-new-"));
try {
  inWorkspace(join(temporary, "workspace"));
  if (!process.argv.includes("--inside")) await standalone(join(temporary, "standalone"));
} finally {
  rmSync(temporary, { recursive: true, force: true });
}

/** @param {string} folder */
async function standalone(folder) {
  step("create one outside", root, "node", ["scripts/new.mjs", "executor", "my-cloud", "--directory", folder]);
  await withPackedPackages(async (packages) => {
    fromTarballs(folder, Object.fromEntries(packages.map(({ name, tarball }) => [name, `file:${tarball}`])));
    const quiet = ["--no-audit", "--no-fund", "--prefer-offline", "--loglevel=error"];
    step("install it from tarballs", folder, "npm", ["install", ...quiet]);
    for (const name of ["core", "executor-kit", "executor-testkit"]) {
      const installed = join(folder, "node_modules/@fenced", name);
      if (lstatSync(installed).isSymbolicLink() || existsSync(join(installed, "node_modules", "@fenced"))) {
        throw new Error(`${installed} differs from what would be published`);
      }
    }
    step("build it", folder, "npm", ["run", "build"]);
    step("check its types", folder, "npm", ["run", "typecheck"]);
    step("run the conformance suite", folder, "npm", ["test"]);
  });
}

/**
 * Replaces versions with the tarballs that they will refer to once published.
 *
 * @param {string} folder
 * @param {Record<string, string>} places
 */
function fromTarballs(folder, places) {
  const file = join(folder, "package.json");
  const manifest = /** @type {Record<string, Record<string, string>>} */ (JSON.parse(readFileSync(file, "utf8")));
  const direct = [manifest["dependencies"] ?? {}, manifest["devDependencies"] ?? {}];
  for (const each of direct) for (const name of Object.keys(each)) each[name] = places[name] ?? each[name] ?? "";
  manifest["overrides"] = places;
  writeFileSync(file, JSON.stringify(manifest));
}

/** @param {string} copy */
function inWorkspace(copy) {
  copyWorkingTree(copy);
  const { status, output } = pnpm(["install", "--frozen-lockfile", "--prefer-offline"], copy);
  if (status !== 0) throw new Error(`The copy could not be installed:\n${output}`);
  step("create one in the workspace", copy, "node", ["scripts/new.mjs", "executor", "my-cloud"]);
  refusedAgain(copy);
  const place = "packages/executor-my-cloud";
  step("build it", copy, "node", ["scripts/turbo.mjs", "build", "--filter=@fenced/executor-my-cloud"]);
  step("check its tests' types", copy, "node", ["node_modules/typescript/bin/tsc", "-p", `${place}/test`]);
  step("lint", copy, "node", ["node_modules/oxlint/bin/oxlint", place]);
  step("format", copy, "node", ["node_modules/oxfmt/bin/oxfmt", "--check", place, ".changeset", "tsconfig.json"]);
  for (const check of ["snippets", "knip"]) step(check, copy, "npm", ["run", check]);
  const packed = pnpm(["pack", "--pack-destination", copy], join(copy, place));
  if (packed.status !== 0) throw new Error(`It could not be packed:\n${packed.output}`);
  const tarball = "fenced-executor-my-cloud-0.0.0.tgz";
  step("publint", copy, "node", ["node_modules/publint/src/cli.js", "run", tarball, "--strict"]);
  const test = ["run", "--project=executor-my-cloud", "my-cloud-code-executor"];
  step("run its own test", copy, "node", ["node_modules/vitest/vitest.mjs", ...test]);
}

/** @param {string} copy */
function refusedAgain(copy) {
  for (const name of ["my-cloud", "My_Cloud", "kit", "executor-kit", "executor-3d", "example-cloud"]) {
    const { status } = spawnSync(process.execPath, ["scripts/new.mjs", "executor", name], { cwd: copy });
    if (status === 0) throw new Error(`"${name}" should have been refused`);
  }
}

/**
 * @param {string} what
 * @param {string} cwd
 * @param {string} program
 * @param {readonly string[]} args
 */
function step(what, cwd, program, args) {
  const started = Date.now();
  console.log(`        ${what} ...`);
  const { status, stdout, stderr, error } = spawnSync(program, args, {
    cwd,
    encoding: "utf8",
    env: environment,
    timeout: stepMinutes * 60_000,
    maxBuffer: 64 * 1024 * 1024,
  });
  const took = `${((Date.now() - started) / 1000).toFixed(0)} s`;
  if (status === 0) {
    console.log(`ok      ${what} (${took})`);
    return;
  }
  const said = error === undefined ? `${stdout}${stderr}` : `${error.message}\n${stdout}${stderr}`;
  throw new Error(`${what} failed after ${took}:\n${withoutUrls(said)}`);
}
