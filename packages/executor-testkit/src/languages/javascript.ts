import { childKinds, type ChildKind, type FixtureLanguage } from "./fixture-language.ts";

const quote = (text: string): string => JSON.stringify(text);

const beats = 3600;
const pause = (milliseconds: number) =>
  `Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ${milliseconds});`;
const beatLoop = (file: string) =>
  `for (let beat = 0; beat < ${beats}; beat++) { fs.appendFileSync(${quote(file)}, "."); ${pause(50)} }`;

const until = (condition: string) => `for (let wait = 0; wait < 6000 && !(${condition}); wait++) ${pause(20)}`;
const awaitFile = (path: string) => until(`fs.existsSync(${quote(path)})`);
const awaitBeat = (path: string) => until(`fs.statSync(${quote(path)}, { throwIfNoEntry: false })?.size > 0`);

const beatProgram = (file: string) =>
  `const fs = require("node:fs"); fs.writeFileSync(${quote(`${file}.pid`)}, String(process.pid)); ${beatLoop(file)}`;

const startNode = (program: string, options: string) =>
  `childProcess.spawn(process.execPath, ["-e", ${quote(program)}], { stdio: ["ignore", "inherit", "inherit"], ${options} }).unref();`;

const startBeating: Readonly<Record<ChildKind, (program: string) => string>> = {
  child: (program) => startNode(program, ""),
  "new-session": (program) => startNode(program, "detached: true"),
  "double-fork": (program) => {
    const between = `const childProcess = require("node:child_process"); ${startNode(program, "detached: true")}`;
    return `childProcess.spawnSync(process.execPath, ["-e", ${quote(between)}], { stdio: "inherit" });`;
  },
  "no-environment": (program) => startNode(program, "env: {}"),
  "no-traces": (program) => startNode(program, "detached: true, env: {}"),
};

const serverProgram = (portFile: string) => `const fs = require("node:fs");
setTimeout(() => process.exit(0), 180_000);
const server = require("node:net").createServer((socket) => {
  fs.writeSync(1, "called\\n");
  socket.end("pong");
});
server.listen(0, "127.0.0.1", () => {
  fs.writeFileSync(${quote(`${portFile}.new`)}, String(server.address().port));
  fs.renameSync(${quote(`${portFile}.new`)}, ${quote(portFile)});
});`;

// Synchronous, so that output keeps its order and is not buffered, even for pipes. A full pipe reports EAGAIN.
const writeSync = (expression: string, to: "stdout" | "stderr" = "stdout") =>
  `for (let rest = Buffer.from(${expression}); rest.length > 0; ) {
  try { rest = rest.subarray(fs.writeSync(${to === "stdout" ? 1 : 2}, rest)); }
  catch (error) { if (error.code !== "EAGAIN") throw error; ${pause(5)} }
}`;

const readInput = `const chunks = []; for await (const chunk of process.stdin) chunks.push(chunk);
const input = Buffer.concat(chunks).toString();`;

// In its own scope, since a session that keeps state would refuse to declare `fs` twice.
const scoped = (statements: readonly string[]) =>
  `{\nconst fs = await import("node:fs"); const childProcess = await import("node:child_process"); const net = await import("node:net");\n${statements.join("\n")}\n}\n`;

const isDeclaration = (statement: string) => /^(?:import|export|var) /.test(statement);

/** Fixture programs in JavaScript, for ECMAScript modules in Node.js. */
export const javascript: FixtureLanguage = {
  name: "javascript",
  extension: "mjs",
  comment: "//",
  childKinds,

  program: (...statements) => ({
    language: "javascript",
    code: [...statements.filter(isDeclaration), scoped(statements.filter((line) => !isDeclaration(line)))].join("\n"),
  }),
  nothing: () => "void 0;",
  print: (text) => writeSync(quote(`${text}\n`)),
  write: (text, to) => writeSync(quote(text), to),
  writeBytes: (bytes) => writeSync(JSON.stringify(bytes)),
  fill: (character, count, to) => writeSync(`${quote(character)}.repeat(${count})`, to),
  lines: (count) => writeSync(`Array.from({ length: ${count} }, (_, line) => "line " + line + "\\n").join("")`),
  fail: (message) => `throw new Error(${quote(message)});`,
  exit: (code) => `process.exit(${code});`,
  sleep: pause,

  printLineRead: () => `{ ${readInput}
if (input === "") throw new Error("end of file");
${writeSync('"read:" + input.split("\\n")[0] + "\\n"')} }`,
  printInputLength: () => `{ ${readInput}\n${writeSync('"length:" + input.length + "\\n"')} }`,
  printVariable: (name) => writeSync(`${quote(`${name}=`)} + (process.env[${quote(name)}] ?? "(unset)") + "\\n"`),

  assign: (name, value) => `var ${name} = ${quote(value)};`,
  printAssigned: (name) => writeSync(`${name} + "\\n"`),
  moduleSource: (value) => `export const VALUE = ${quote(value)};`,
  printImported: (path) => `import { VALUE } from ${quote(`./${path}`)}; console.log(VALUE);`,
  printCall: (module, name, ...parameters) =>
    `import { ${name} } from ${quote(module)}; console.log(await ${name}(${parameters.join(", ")}));`,

  writeFile: (path, text) => `fs.writeFileSync(${quote(path)}, ${quote(text)});`,
  printFile: (path) => writeSync(`fs.readFileSync(${quote(path)})`),
  printExists: (path) =>
    writeSync(`fs.lstatSync(${quote(path)}, { throwIfNoEntry: false }) ? "exists\\n" : "missing\\n"`),
  makeDirectory: (path) => `fs.mkdirSync(${quote(path)}, { recursive: true });`,
  removeDirectory: (path) => `fs.rmSync(${quote(path)}, { recursive: true });`,
  symlink: (target, link) => `fs.symlinkSync(${quote(target)}, ${quote(link)});`,
  awaitFile,

  beat: beatLoop,
  beatStubbornly: (file) =>
    `for (const name of ["SIGTERM", "SIGINT", "SIGHUP"]) process.on(name, () => {});
for (let beat = 0; beat < ${beats}; beat++) { fs.appendFileSync(${quote(file)}, "."); await new Promise((done) => setTimeout(done, 50)); }`,
  spawnBeating: (file, kind) => `${startBeating[kind](beatProgram(file))}\n${awaitBeat(file)}`,
  flood: (file, times) => `for (let flood = 0; flood < ${times}; flood++) {
${writeSync('"y".repeat(65535) + "\\n"')}
fs.appendFileSync(${quote(file)}, ".");
}`,

  spawnServer: (portFile) => `${startNode(serverProgram(portFile), "")}\n${awaitFile(portFile)}`,
  callServer: (portFile) => `await new Promise((done) => {
  const socket = net.connect(Number(fs.readFileSync(${quote(portFile)})), "127.0.0.1");
  socket.on("data", (data) => { ${writeSync('data + "\\n"')} });
  socket.on("error", () => { ${writeSync('"no answer\\n"')} });
  socket.on("close", done);
});`,
};
