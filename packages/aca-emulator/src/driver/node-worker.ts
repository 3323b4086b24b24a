/**
 * JavaScript source of the process that runs a NodeLTS session's code: CommonJS, with `require`, top-level `await`
 * and variables that stay. It reads tasks from file descriptor 3 and answers on 4.
 */
export const nodeWorker: string = String.raw`
const fs = require("node:fs");
const repl = require("node:repl");
const util = require("node:util");
const { PassThrough } = require("node:stream");
const { createRequire } = require("node:module");

const server = repl.start({ input: new PassThrough(), output: new PassThrough(), prompt: "", useGlobal: true });
globalThis.require = createRequire(process.cwd() + "/");

// What the code throws comes through the call back or, in some versions of Node, only through the REPL's domain.
let fail = () => {};
if (server._domain) server._domain.removeAllListeners("error").on("error", (error) => fail(error));
const evaluate = (code) => new Promise((resolve, reject) => {
  fail = reject;
  server.eval(code, server.context, "cell", (error, value) => (error ? reject(error) : resolve(value)));
});

async function run(code) {
  if (code.trim() === "") return { status: "Succeeded", result: null };
  try {
    return { status: "Succeeded", result: toJson(await evaluate(code + "\n")) };
  } catch (thrown) {
    const error = thrown instanceof repl.Recoverable ? thrown.err : thrown;
    const text = error instanceof Error || util.types.isNativeError(error) ? ownPart(error.stack) : "Uncaught " + util.inspect(error);
    fs.writeSync(2, text + "\n");
    return { status: "Failed", error: { code: "ExecutionFailed", message: String(error) } };
  }
}

/** A stack without the frames of this program. */
function ownPart(stack) {
  return stack.replace(/\n +at (?:ContextifyScript|makeContextifyScript|REPLServer)[^]*$/, "");
}

function toJson(value) {
  if (value === undefined) return null;
  const type = typeof value;
  if (value === null || type === "string" || type === "boolean" || Number.isFinite(value)) return value;
  try {
    const plain = type === "object" && (Array.isArray(value) || Object.getPrototypeOf(value) === Object.prototype);
    if (plain) return JSON.parse(JSON.stringify(value));
  } catch {}
  return util.inspect(value);
}

process.on("uncaughtException", (error) => fs.writeSync(2, "Uncaught " + util.inspect(error) + "\n"));
let queue = Promise.resolve();
require("node:readline").createInterface({ input: fs.createReadStream(null, { fd: 3 }) })
  .on("line", (line) => {
    queue = queue.then(async () => {
      const reply = await run(JSON.parse(line).code);
      fs.writeSync(4, JSON.stringify(reply) + "\n");
    });
  })
  .on("close", () => process.exit(0));
`;
