import { childKinds, type ChildKind, type FixtureLanguage } from "./fixture-language.ts";

const quote = (text: string): string => `'${text.replaceAll("'", String.raw`'\''`)}'`;
const octal = (bytes: Iterable<number>): string =>
  Array.from(bytes, (byte) => `\\${byte.toString(8).padStart(3, "0")}`).join("");
const redirect = (to: "stdout" | "stderr" = "stdout"): string => (to === "stderr" ? " >&2" : "");

const beats = 3600;
const beatLoop = (file: string) =>
  `beat=0; while [ $beat -lt ${beats} ]; do printf . >> ${quote(file)}; sleep 0.05; beat=$((beat + 1)); done`;
const until = (condition: string) =>
  `wait=0; while ! [ ${condition} ] && [ $wait -lt 6000 ]; do sleep 0.02; wait=$((wait + 1)); done`;
const awaitFile = (path: string) => until(`-e ${quote(path)}`);
const awaitBeat = (path: string) => until(`-s ${quote(path)}`);

const beatProgram = (file: string) => `echo $$ > ${quote(`${file}.pid`)}; ${beatLoop(file)}`;
const start = (program: string, before = "") => `${before}sh -c ${quote(program)} &`;

const emptyEnvironment = 'env -i PATH="$PATH" ';

const startBeating: Readonly<Record<ChildKind, (program: string) => string>> = {
  child: (program) => start(program),
  "new-session": (program) => start(program, "setsid "),
  "double-fork": (program) => `( ${start(program)} )`,
  "no-environment": (program) => start(program, emptyEnvironment),
  "no-traces": (program) => start(program, `setsid ${emptyEnvironment}`),
};

// Writes bytes as octal escapes, which leaves nothing to interpret and allows lines of any length.
const write = (bytes: Iterable<number>, to?: "stdout" | "stderr") => `printf '${octal(bytes)}'${redirect(to)}`;
const encode = (text: string) => new TextEncoder().encode(text);

const shell = (name: "sh" | "bash", kinds: readonly ChildKind[]): FixtureLanguage => ({
  name,
  extension: "sh",
  comment: "#",
  childKinds: kinds,

  program: (...statements) => ({ language: name, code: `${statements.join("\n")}\n` }),
  nothing: () => ":",
  print: (text) => write(encode(`${text}\n`)),
  write: (text, to) => write(encode(text), to),
  writeBytes: (bytes) => write(bytes),
  fill: (character, count, to) => `head -c ${count} /dev/zero | tr '\\0' ${quote(character)}${redirect(to)}`,
  lines: (count) => `line=0; while [ $line -lt ${count} ]; do echo "line $line"; line=$((line + 1)); done`,
  fail: (message) => `echo ${quote(message)} >&2; exit 1`,
  exit: (code) => `exit ${code}`,
  sleep: (milliseconds) => `sleep ${milliseconds / 1000}`,

  printLineRead: () => `read -r input || exit 1; echo "read:$input"`,
  printInputLength: () => `echo "length:$(wc -c | tr -d ' ')"`,
  printVariable: (variable) => `echo "${variable}=\${${variable}-(unset)}"`,

  assign: (variable, value) => `${variable}=${quote(value)}`,
  printAssigned: (variable) => `echo "\${${variable}?}"`,
  moduleSource: (value) => `VALUE=${quote(value)}\n`,
  printImported: (path) => `. ${quote(`./${path}`)}; echo "$VALUE"`,

  writeFile: (path, text) => `${write(encode(text))} > ${quote(path)}`,
  printFile: (path) => `cat ${quote(path)}`,
  printExists: (path) => `if [ -e ${quote(path)} ] || [ -L ${quote(path)} ]; then echo exists; else echo missing; fi`,
  makeDirectory: (path) => `mkdir -p ${quote(path)}`,
  removeDirectory: (path) => `rm -r ${quote(path)}`,
  symlink: (target, link) => `ln -s ${quote(target)} ${quote(link)}`,
  awaitFile,

  beat: beatLoop,
  beatStubbornly: (file) => `trap '' TERM INT HUP; ${beatLoop(file)}`,
  spawnBeating: (file, kind) => `${startBeating[kind](beatProgram(file))}\n${awaitBeat(file)}`,
  flood: (file, times) => `flood=0; while [ $flood -lt ${times} ]; do
head -c 65535 /dev/zero | tr '\\0' y; echo
printf . >> ${quote(file)}
flood=$((flood + 1)); done`,
});

/** Fixture programs for a POSIX shell with the usual utilities. */
export const sh: FixtureLanguage = shell("sh", ["child", "double-fork", "no-environment"]);

/** Fixture programs for bash. */
export const bash: FixtureLanguage = shell("bash", childKinds);
