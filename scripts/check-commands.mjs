/**
 * Checks that each command of the packages is documented, and tested with all its options.
 *
 * The built commands say themselves what there is (`--help`). The table in docs/compositions.md names the tests of each command: these
 * must use each option (`"--image"`) and each choice of an option (`"--executor", "wasm"`). The README of the command's package
 * must name each option. No page may show an option that the command does not have, or a choice that it does not offer.
 */
import { spawnSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

/**
 * @typedef {object} Command
 * @property {string} name - As users type it: `fenced run`.
 * @property {string | undefined} alias - The package that `npx` starts it by.
 * @property {string} readme
 * @property {ReadonlyMap<string, readonly string[]>} options - With their choices.
 */

const root = join(import.meta.dirname, "..");
/** What every command has, and needs no test. */
const common = new Set(["--help", "--version"]);
/** What `kind` stands for in tests that are repeated on each kind of machine. */
const kinds = ["docker", "os-sandbox", "wasm"];
/** @type {string[]} */
const problems = [];

const commands = ["packages", "apps"].flatMap((parent) =>
  readdirSync(join(root, parent)).flatMap((folder) => commandsOf(`${parent}/${folder}`)),
);
const tests = testsByCommand();
for (const command of commands) checkCommand(command);
for (const name of tests.keys()) {
  if (!commands.some((command) => command.name === name)) problems.push(`there is no command ${name}`);
}
for (const page of pages()) checkPage(page);
for (const problem of problems) console.error(problem);
if (problems.length > 0) process.exitCode = 1;
else console.log(`${commands.length} commands are documented, and tested with all their options.`);

/**
 * The commands of a package, with those that a command has below it.
 *
 * @param {string} folder
 * @returns {Command[]}
 */
function commandsOf(folder) {
  const manifest = join(root, folder, "package.json");
  if (!existsSync(manifest)) return [];
  const { name, bin = {} } = /** @type {{ name: string, bin?: Record<string, string> }} */ (
    JSON.parse(readFileSync(manifest, "utf8"))
  );
  return Object.values(bin).flatMap((file) => {
    const program = join(root, folder, file);
    const help = helpOf(program);
    const [, below] = /^Commands:\n((?: .*\n)+)/m.exec(help) ?? [];
    const names = [...(below ?? "").matchAll(/^ {2}(\w[\w-]*)/gm)].map(([, each = ""]) => each);
    const helps =
      below === undefined ? [help] : names.filter((each) => each !== "help").map((each) => helpOf(program, each));
    return helps.map((each) => ({
      name: nameIn(each),
      alias: below === undefined ? name : undefined,
      readme: `${folder}/README.md`,
      options: optionsIn(each),
    }));
  });
}

/**
 * @param {string} program
 * @param {string[]} words
 */
function helpOf(program, ...words) {
  const { stdout, stderr, status } = spawnSync(process.execPath, [program, ...words, "--help"], { encoding: "utf8" });
  if (status !== 0) throw new Error(`${program} --help failed; run npm run build first. ${stderr}`);
  // Without the breaks within an option's line.
  return stdout.replaceAll(/\n {6,}(?! *--)/g, " ");
}

/** @param {string} help */
function nameIn(help) {
  return /^Usage: ([\w -]+?)(?: --)? [[<]/.exec(help)?.[1] ?? "";
}

/** @param {string} help */
function optionsIn(help) {
  const lines = [...help.matchAll(/^ {2,}(?:-\w, )?(--[\w-]+)(.*)$/gm)];
  return new Map(
    lines
      .filter(([, option = ""]) => !common.has(option))
      .map(([, option = "", rest = ""]) => {
        const [, choices = ""] = /\(choices: ((?:"[^"]*",? ?)+)/.exec(rest) ?? [];
        return [option, [...choices.matchAll(/"([^"]*)"/g)].map(([, choice = ""]) => choice)];
      }),
  );
}

/** The text of each command's tests, from the table. */
function testsByCommand() {
  const [, section = ""] = readFileSync(join(root, "docs/compositions.md"), "utf8").split("## Commands\n");
  /** @type {Map<string, string>} */
  const found = new Map();
  for (const [, names = "", links = ""] of section.matchAll(/^\| (`.*?) *\| (.*)\|$/gm)) {
    const files = [...links.matchAll(/\]\(\.\.\/([^)]+)\)/g)].map(([, file = ""]) => file);
    const missing = files.filter((file) => !existsSync(join(root, file)));
    for (const file of missing) problems.push(`docs/compositions.md: there is no ${file}`);
    const texts = files.filter((file) => !missing.includes(file)).map((file) => readFileSync(join(root, file), "utf8"));
    const text = texts
      .join("\n")
      .replaceAll(/("--[\w-]+", )kind\b/g, (_, option) => kinds.map((kind) => `${option}"${kind}"`).join());
    for (const [, name = ""] of names.matchAll(/`([^`]+)`/g)) found.set(name, text);
  }
  return found;
}

/** @param {Command} command */
function checkCommand({ name, readme, options }) {
  const text = tests.get(name);
  if (text === undefined) {
    problems.push(`docs/compositions.md: no tests of \`${name}\` are listed`);
    return;
  }
  const documented = readFileSync(join(root, readme), "utf8");
  for (const [option, choices] of options) {
    const shown = new RegExp(`\`(?:-\\w\`, \`)?${option}[ \`]`);
    if (!shown.test(documented)) problems.push(`${readme}: ${name} ${option} is not there`);
    if (!text.includes(`"${option}"`)) problems.push(`no listed test uses ${name} ${option}`);
    for (const choice of choices) {
      if (!text.includes(`"${option}", "${choice}"`)) problems.push(`no listed test uses ${name} ${option} ${choice}`);
    }
  }
}

/** READMEs and guides. */
function pages() {
  const readmes = ["packages", "apps"].flatMap((parent) =>
    readdirSync(join(root, parent)).map((folder) => `${parent}/${folder}/README.md`),
  );
  const guides = readdirSync(join(root, "docs")).map((file) => `docs/${file}`);
  return ["README.md", "CONTRIBUTING.md", "SUPPORT.md", "examples/README.md", ...readmes, ...guides].filter(
    (file) => file.endsWith(".md") && existsSync(join(root, file)),
  );
}

/** @param {string} page */
function checkPage(page) {
  const text = readFileSync(join(root, page), "utf8").replaceAll("\\\n", " ");
  for (const { name, alias, options } of commands) {
    const names = alias === undefined ? name : `(?:${name}|npx(?: -y)? ${alias}|"${alias}")`;
    for (const [, line = ""] of text.matchAll(new RegExp(`(?<![\\w/@-])${names}(?![\\w/-])(.*)`, "g"))) {
      // Up to the end of a code span, a comment or the next command; without words of other programs.
      const [own = ""] = line.replaceAll(/'[^']*'/g, "''").split(/`| # |\]/);
      for (const [, option = "", value = ""] of own.matchAll(/(--[a-z][\w-]*)(?:[ =",]+([\w-]+))?/g)) {
        const choices = options.get(option);
        if (choices === undefined && !common.has(option)) problems.push(`${page}: ${name} has no option ${option}`);
        if (choices && choices.length > 0 && !choices.includes(value)) {
          problems.push(`${page}: ${name} ${option} cannot be "${value}"`);
        }
      }
    }
  }
}
