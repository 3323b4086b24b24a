/**
 * Does what a newcomer does on a machine with Node alone: no Docker, Podman, bubblewrap, Python, git, ssh, openssl or Jupyter. It takes
 * this checkout's files into a folder of their own, where nothing is installed or built.
 *
 *   node scripts/ci/node-alone.mjs                `npm test` of one package, to show that it works there
 *   node scripts/ci/node-alone.mjs all            `npm test` and `npm run demo`; so does FENCED_SUITE=full, as in `.ci/full`
 *   node scripts/ci/node-alone.mjs run COMMAND... another command, in this checkout: run node scripts/test.mjs --project=egress
 *
 * Each test that names no backend runs as on such a machine everywhere (`test-support/only-what-it-names.ts`), and a test of the demo
 * becomes such a machine. So what is left to show before a merge is that installing, building and testing need nothing else.
 */
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { folderOfNodeAlone, variablesOfNodeAlone } from "../../test-support/node-alone.mjs";
import { copyWorkingTree } from "../packages.mjs";
import { root } from "../workspace.mjs";

const temporary = mkdtempSync(join(tmpdir(), "node-alone-"));
const {
  FENCED_REQUIRE: _required,
  FENCED_BACKENDS: _found,
  OPENAI_API_KEY: _key,
  OPENAI_BASE_URL: _url,
  ...env
} = process.env;
Object.assign(env, variablesOfNodeAlone, {
  PATH: folderOfNodeAlone(temporary, process.env.PATH ?? ""),
  // Jupyter's Pythons and Chromium are found by their full paths.
  FENCED_WITHOUT: "jupyter,jupyter2,chromium",
});

try {
  const [first, program, ...words] = process.argv.slice(2);
  if (first === "run" && program !== undefined) run(root, program, ...words);
  else if (first === undefined || first === "all") newcomer(first === "all" || process.env.FENCED_SUITE === "full");
  else throw new Error(`Unknown argument: ${first}. Use \`all\`, \`run COMMAND...\`, or nothing.`);
} finally {
  rmSync(temporary, { recursive: true, force: true });
}

/** @param {boolean} all */
function newcomer(all) {
  const folder = join(temporary, "fenced");
  copyWorkingTree(folder);
  run(folder, "npm", "test", ...(all ? [] : ["--", "--filter=@fenced/model-replay"]));
  if (all) run(folder, "npm", "run", "demo");
}

/**
 * @param {string} cwd
 * @param {string} program
 * @param {readonly string[]} words
 */
function run(cwd, program, ...words) {
  const { status } = spawnSync(program, words, { cwd, env, stdio: "inherit" });
  if (status !== 0) process.exitCode = status ?? 1;
}
