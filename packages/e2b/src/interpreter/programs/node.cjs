// Runs the cells of one context in this process, as scripts whose declarations are still there for the next cell. Started with
// `node -e`: descriptor 3 has the requests, descriptor 4 takes what the cells show. Each message is JSON after its length in four
// bytes; the first one has the texts of the programs that are needed here.
"use strict";

const { writeSync } = require("node:fs");
const { Socket } = require("node:net");
const { inspect } = require("node:util");
const { constants, Script } = require("node:vm");

const requests = new Socket({ fd: 3, readable: true, writable: false });
const { parse, stringify } = JSON;
const variables = process.env;
/** Rejects the cell that awaits something; absent while none does. @type {((reason: Error) => void) | undefined} */
let interrupt;
/** @type {any} */
let tools;
let received = Buffer.alloc(0);
/** Resolves when the last cell has ended. */
let turns = Promise.resolve();

process.on("SIGINT", () => interrupt?.(interruption()));
process.on("uncaughtException", (error) => {
  complain(error);
  if (!tools) process.exit(1);
});
process.on("unhandledRejection", (error) => complain(error));
requests.on("end", () => process.exit(0));
requests.on("data", (piece) => {
  received = Buffer.concat([received, piece]);
  while (received.length >= 4 && received.length >= 4 + received.readUInt32BE(0)) {
    const end = 4 + received.readUInt32BE(0);
    const request = parse(received.toString("utf8", 4, end));
    received = received.subarray(end);
    if (tools) turns = turns.then(() => run(request));
    else tools = load(request);
  }
});

/** @param {Readonly<Record<"parser" | "scripts", string>> & { typescript?: string }} files */
function load(files) {
  const module = { exports: {} };
  new Function("module", "exports", files.parser)(module, module.exports);
  // A function has no imports.
  const scripts = files.scripts.replaceAll(/^import .*$/gm, "");
  const made = new Function("Script", `${scripts}\nreturn { scriptOf, TextError, typeStripper };`)(Script);
  const strip = files.typescript === undefined ? undefined : made.typeStripper(files.typescript);
  return { ...made, parser: module.exports, strip };
}

/** @param {{ code: string, env: Readonly<Record<string, string>>, number: number }} request */
async function run({ code, env, number }) {
  const outer = Object.keys(env).map((name) => [name, variables[name]]);
  Object.assign(variables, env);
  try {
    const value = await evaluate(code, `<cell ${number}>`);
    if (value !== undefined) report({ data: { "text/plain": inspect(value) }, main: true });
  } catch (error) {
    report({ error: described(error) });
  } finally {
    for (const [name, value] of outer) {
      if (value === undefined) delete variables[name ?? ""];
      else variables[name ?? ""] = value;
    }
    report({ done: true });
  }
}

/** @param {string} code @param {string} name */
async function evaluate(code, name) {
  const text = tools.strip ? tools.strip(code, name) : code;
  const source = tools.scriptOf(tools.parser, text, name);
  const program = tools.parser.parse(source, {
    ecmaVersion: "latest",
    sourceType: "script",
    allowAwaitOutsideFunction: true,
    allowHashBang: true,
  });
  const isAwaiting = program.body.some(awaits);
  // Cells import from the work directory, as programs of `node -e` do.
  const options = { filename: name, importModuleDynamically: constants.USE_MAIN_CONTEXT_DEFAULT_LOADER };
  const script = new Script(isAwaiting ? asFunction(program, source) : source, options);
  let value;
  try {
    value = script.runInThisContext({ breakOnSigint: true });
  } catch (error) {
    throw Reflect.get(Object(error), "code") === "ERR_SCRIPT_EXECUTION_INTERRUPTED" ? interruption() : error;
  }
  if (!isAwaiting) return program.body.at(-1)?.type === "ExpressionStatement" ? value : undefined;
  try {
    const interrupted = new Promise((_, reject) => {
      interrupt = reject;
    });
    return await Promise.race([value, interrupted]);
  } finally {
    interrupt = undefined;
  }
}

/** Whether a part of the program awaits something itself, not in a function. @param {any} node @returns {boolean} */
function awaits(node) {
  if (typeof node !== "object" || node === null) return false;
  if (node.type === "AwaitExpression" || (node.type === "ForOfStatement" && node.await)) return true;
  if (/Function|^MethodDefinition$|^PropertyDefinition$|^StaticBlock$/.test(node.type ?? "")) return false;
  return Object.values(node).some((each) => (Array.isArray(each) ? each.some(awaits) : awaits(each)));
}

/**
 * A script that runs the program in an asynchronous function, and declares what it declares outside. Its value is a promise of that
 * of the last expression.
 *
 * @param {any} program
 * @param {string} source
 */
function asFunction({ body }, source) {
  /** @type {string[]} */
  const names = [];
  const functions = body.filter((/** @type {any} */ { type }) => type === "FunctionDeclaration");
  let text = "";
  let at = 0;
  for (const node of body) {
    text += source.slice(at, node.start);
    at = node.end;
    if (node.type === "VariableDeclaration") {
      const parts = node.declarations.map((/** @type {any} */ { id, init }) => {
        addNames(id, names);
        return `(${source.slice(id.start, id.end)} = ${init ? source.slice(init.start, init.end) : "undefined"})`;
      });
      text += `void (${parts.join(", ")});`;
    } else if (node === body.at(-1) && node.type === "ExpressionStatement") {
      text += `return (${source.slice(node.expression.start, node.expression.end)});`;
    } else text += source.slice(node.start, node.end);
  }
  text += source.slice(at);
  const declared = names.length > 0 ? `var ${[...new Set(names)].join(", ")};` : "";
  const offered = functions.map((/** @type {any} */ { id }) => `globalThis.${id.name} = ${id.name};`).join(" ");
  return `${declared}(async () => { ${offered}${text}\n})()`;
}

/** The names that a pattern declares. @param {any} pattern @param {string[]} names */
function addNames(pattern, names) {
  if (pattern?.type === "Identifier") names.push(pattern.name);
  else if (pattern?.type === "ObjectPattern") {
    for (const each of pattern.properties) addNames(each.type === "RestElement" ? each.argument : each.value, names);
  } else if (pattern?.type === "ArrayPattern") for (const each of pattern.elements) addNames(each, names);
  else if (pattern?.type === "AssignmentPattern") addNames(pattern.left, names);
  else if (pattern?.type === "RestElement") addNames(pattern.argument, names);
}

/** @param {unknown} error */
function described(error) {
  if (error instanceof tools.TextError) {
    const { message } = /** @type {Error} */ (error);
    return {
      name: "SyntaxError",
      value: message.split("\n").at(-1)?.replace("SyntaxError: ", "") ?? "",
      traceback: message,
    };
  }
  if (!(error instanceof Error)) return { name: "Error", value: inspect(error), traceback: "" };
  return { name: String(error.name), value: String(error.message), traceback: traceOf(error) };
}

/** The error's stack without the frames of this program. @param {Error} error */
function traceOf(error) {
  const lines = String(error.stack).split("\n");
  const own = lines.findIndex((line) => /\[eval|\(node:vm:/.test(line));
  return lines.slice(0, own < 0 ? lines.length : own).join("\n");
}

/** @param {unknown} error */
function complain(error) {
  process.stderr.write(`${error instanceof Error ? traceOf(error) : inspect(error)}\n`);
}

function interruption() {
  return Object.assign(new Error("The execution was interrupted"), {
    name: "KeyboardInterrupt",
    stack: "KeyboardInterrupt",
  });
}

/** @param {object} message */
function report(message) {
  const text = Buffer.from(stringify(message));
  const head = Buffer.alloc(4);
  head.writeUInt32BE(text.length);
  let rest = Buffer.concat([head, text]);
  while (rest.length > 0) rest = rest.subarray(writeSync(4, rest));
}
