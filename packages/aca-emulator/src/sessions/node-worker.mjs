/**
 * The process that runs a NodeLTS session's code, with `require`, top-level `await` and variables that persist. It reads
 * tasks from file descriptor 3 and answers on 4.
 */
import { createReadStream, writeSync } from "node:fs";
import { createRequire } from "node:module";
import { createInterface } from "node:readline";
import { start, Recoverable } from "node:repl";
import { PassThrough } from "node:stream";
import { inspect } from "node:util";

/** Maximum characters of a value in an answer. */
const largestValue = 16 * 1024 * 1024;

const server = start({ input: new PassThrough(), output: new PassThrough(), prompt: "", useGlobal: true });
Reflect.set(globalThis, "require", createRequire(`${process.cwd()}/`));

/**
 * Errors of the code arrive through the callback or, in some versions of Node, only through the REPL's domain.
 *
 * @type {(error: unknown) => void}
 */
let fail = () => {};
/** @type {unknown} */
const domain = Reflect.get(server, "_domain");
if (domain instanceof Object && "removeAllListeners" in domain && typeof domain.removeAllListeners === "function") {
  domain.removeAllListeners("error").on("error", (/** @type {unknown} */ error) => fail(error));
}

/** @type {(code: string) => Promise<unknown>} */
const evaluate = (code) =>
  new Promise((resolve, reject) => {
    fail = reject;
    server.eval(code, server.context, "cell", (error, value) => (error ? reject(error) : resolve(value)));
  });

/** @param {string} code */
async function run(code) {
  if (code.trim() === "") return { status: "Succeeded", result: null };
  try {
    return { status: "Succeeded", result: toJson(await evaluate(`${code}\n`)) };
  } catch (thrown) {
    const error = thrown instanceof Recoverable ? thrown.err : thrown;
    writeSync(2, `${textOf(error)}\n`);
    return { status: "Failed", error: { code: "ExecutionFailed", message: String(error).slice(0, 4000) } };
  }
}

/**
 * An error with its stack, without this program's frames.
 *
 * @param {unknown} error
 */
function textOf(error) {
  const stack = error instanceof Object && "stack" in error ? error.stack : undefined;
  if (typeof stack !== "string") return `Uncaught ${inspect(error)}`;
  return stack.replace(/\n +at (?:ContextifyScript|makeContextifyScript|REPLServer)[^]*$/, "");
}

/** @type {(value: unknown) => unknown} */
function toJson(value) {
  if (value === undefined) return null;
  try {
    const isPlain = typeof value !== "object" || Array.isArray(value) || isRecord(value);
    const text = isPlain ? JSON.stringify(value) : undefined;
    if (text !== undefined && (typeof value !== "number" || Number.isFinite(value))) {
      return text.length > largestValue ? `${text.slice(0, largestValue)}...` : JSON.parse(text);
    }
  } catch {
    // Not everything is JSON.
  }
  return inspect(value).slice(0, largestValue);
}

/** @param {object | null} value */
function isRecord(value) {
  return value === null || Object.getPrototypeOf(value) === Object.prototype;
}

process.on("uncaughtException", (error) => {
  writeSync(2, `Uncaught ${inspect(error)}\n`);
});
let queue = Promise.resolve();
createInterface({ input: createReadStream("", { fd: 3 }) })
  .on("line", (line) => {
    queue = queue.then(async () => {
      /** @type {{ code: string }} */
      const { code } = JSON.parse(line);
      const report = await run(code);
      writeSync(4, `${JSON.stringify({ ...report, result: JSON.stringify(report.result ?? null) })}\n`);
    });
  })
  .on("close", () => process.exit(0));
