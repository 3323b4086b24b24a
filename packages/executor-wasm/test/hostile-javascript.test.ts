import net, { type AddressInfo } from "node:net";
import type { CodeExecutor, CodeResult, ExecuteOptions } from "@fenced/core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { WasmCodeExecutor } from "../src/index.ts";

const mebibyte = 1_048_576;

describe("hostile JavaScript", () => {
  let executor: CodeExecutor;

  beforeAll(() => {
    executor = new WasmCodeExecutor({ languages: ["javascript"], memoryBytes: 96 * mebibyte, timeoutMs: 60_000 });
  });
  afterAll(() => executor.stop());

  const run = (code: string, options?: ExecuteOptions): Promise<CodeResult> =>
    executor.executeCodeBlocks([{ language: "javascript", code }], options);
  const goesOn = async (): Promise<void> => expect((await run("console.log('next')")).output).toBe("next\n");

  it("finds no object of Node behind any constructor, prototype, error or caller", async () => {
    const code = `
const errors = [];
try { require("node:http"); } catch (error) { errors.push(error); }
await import("node:vm").catch((error) => errors.push(error));
await import("./none.js").catch((error) => errors.push(error));
try { require("node:fs").readFileSync("none"); } catch (error) { errors.push(error); }
try { null.x; } catch (error) { errors.push(error); }
Error.prepareStackTrace = (_, sites) => sites;
const roots = [globalThis, require, process, console, Buffer, ...errors];
`;
    const walk = `
const own = globalThis.Function;
const seen = new Set();
const queue = [...roots, ...errors.map((error) => error.stack), globalThis[Symbol.for("fenced.modules")]];
let foreign = 0, tried = 0;
while (queue.length > 0 && seen.size < 20000) {
  const each = queue.pop();
  if ((typeof each !== "object" && typeof each !== "function") || each === null || seen.has(each)) continue;
  seen.add(each);
  if (typeof each === "function") {
    tried += 1;
    const make = each.constructor?.constructor ?? own;
    try { if (make("return this")() !== globalThis) foreign += 1; } catch {}
    try { if (make("return typeof process.binding + typeof process.mainModule + typeof process.dlopen")() !== "undefined".repeat(3)) foreign += 1; } catch {}
    try { if (each !== own.prototype && !(each instanceof own) && Object.getPrototypeOf(each) !== null && !(Object.getPrototypeOf(each) instanceof own)) foreign += 1; } catch {}
  }
  for (const key of Reflect.ownKeys(each)) { try { queue.push(each[key]); } catch {} }
  queue.push(Object.getPrototypeOf(each), each.constructor);
}
console.log(seen.size > 500, tried > 300, foreign);
console.log(errors.length, errors.every((error) => error instanceof Error && !/node_modules|eval1|wasm-function/.test(String(error.stack) + error.message)));`;
    const { output, exitCode } = await run(code + walk);
    expect([exitCode, output]).toEqual([0, "true true 0\n5 true\n"]);
  });

  it.each(["http", "https", "vm", "worker_threads", "inspector", "cluster", "dgram", "tls", "v8", "wasi", "repl"])(
    "cannot load the module %s",
    async (name) => {
      const code = `
for (const load of [() => require("${name}"), () => require("node:${name}"), () => import("node:${name}")]) {
  try { await load(); console.log("loaded"); } catch (error) { console.log(error.message.slice(0, 18)); }
}`;
      expect((await run(code)).stdout).toBe("Cannot find module\n".repeat(3));
    },
  );

  it("cannot start programs", async () => {
    const code = `
const programs = require("child_process");
for (const name of Object.keys(programs)) { try { programs[name]("true"); console.log("ran"); } catch (error) { console.log(error.code); } }`;
    expect((await run(code)).stdout).toBe("ENOTSUP\n".repeat(7));
  });

  it("cannot see files or variables of the host", async () => {
    const code = `
const fs = require("fs");
fs.symlinkSync("/etc", "etc"); fs.symlinkSync("../../../../etc", "up"); fs.symlinkSync(${JSON.stringify(process.execPath)}, "node");
const names = ["/etc/passwd", "../../../../etc/passwd", "etc/passwd", "up/passwd", "node", "/proc/self/environ", "/dev/fd/3", ${JSON.stringify(process.execPath)}];
for (const name of names) { try { fs.readFileSync(name); console.log("read", name); } catch (error) { console.log(error.code); } }
for (const name of ["/etc/passwd", "file:///etc/passwd", "file:///proc/self/environ"]) { try { await import(name); console.log("loaded"); } catch {} }
for (const name of ["etc", "up", "node"]) fs.unlinkSync(name);
console.log(fs.readdirSync("/").join(), Object.keys(process.env).length < 15, process.env.HOME === ${JSON.stringify(process.env.HOME)});`;
    const { stdout } = await run(code);
    expect(stdout).toBe(`${"ENOENT\n".repeat(8)}home,tmp,workspace true false\n`);
  });

  it("cannot reach a server", async () => {
    let connections = 0;
    const server = net.createServer((socket) => {
      connections += 1;
      socket.destroy();
    });
    await new Promise<void>((resolve) => {
      server.listen(0, "127.0.0.1", resolve);
    });
    const { port } = addressOf(server.address());
    const code = `
for (const name of ["fetch", "WebSocket", "XMLHttpRequest", "EventSource", "Worker", "WebAssembly"]) console.log(name, typeof globalThis[name]);
await new Promise((resolve) => require("net").connect(${port}, "127.0.0.1").on("error", ({ code }) => resolve(console.log(code))).on("connect", resolve));
try { require("net").createServer(); } catch ({ code }) { console.log(code); }`;
    const { stdout, exitCode } = await run(code, { timeoutMs: 120_000 });
    server.close();
    const missing = ["fetch", "WebSocket", "XMLHttpRequest", "EventSource", "Worker", "WebAssembly"];
    expect([exitCode, connections]).toEqual([0, 0]);
    expect(stdout).toBe(`${missing.map((each) => `${each} undefined\n`).join("")}ENETUNREACH\nENOTSUP\n`);
  });

  it("cannot forge messages of its process: no descriptor leads to the host", async () => {
    const code = `
const fs = require("fs");
for (let fd = 3; fd < 200; fd++) { try { fs.writeSync(fd, Buffer.from([0, 0, 0, 23, 4, 0, 0, 0, 15])); console.log("wrote", fd); } catch (error) { if (error.code !== "EBADF") console.log(error); } }
throw new Error("as it is");`;
    const { exitCode, stdout } = await run(code);
    expect([exitCode, stdout]).toEqual([1, ""]);
  });

  it("throws at the memory limit, and keeps its variables", async () => {
    await run("const kept = 'here';");
    const code = `
let pieces = [];
try { for (;;) pieces.push(new Uint8Array(4_000_000)); } catch (error) { console.log(pieces.length < 24, error.message); }
pieces = undefined;`;
    expect((await run(code)).stdout).toBe("true out of memory\n");
    expect((await run("console.log(kept)")).stdout).toBe("here\n");
  });

  it("gets ENOSPC when its files reach the limit, wherever they are", async () => {
    await using small = new WasmCodeExecutor({ languages: ["javascript"], storageBytes: 4 * mebibyte });
    const code = `
for (const place of ["/workspace", "/tmp"]) {
  try { for (let count = 0; ; count++) require("fs").writeFileSync(place + "/" + count, Buffer.alloc(1_000_000, 1)); } catch (error) { console.log(error.code); }
}`;
    const { stdout, exitCode } = await small.executeCodeBlocks([{ language: "javascript", code }]);
    expect([exitCode, stdout]).toEqual([0, "ENOSPC\nENOSPC\n"]);
  });

  it.each([
    ["calls itself without end", "(function f() { f(); })()"],
    ["nests arrays a million deep in JSON", "JSON.parse('['.repeat(1e6))"],
    ["nests brackets in its own text", "eval('['.repeat(1e5))"],
    ["answers itself through a proxy", "const p = new Proxy({}, { get: (_, key) => p[key] }); p.x"],
    ["sorts while it sorts", "[3, 1, 2].sort(function g() { [3, 1, 2].sort(g); })"],
  ])("fails only its own block when it %s", async (_name, code) => {
    const result = await run(code);
    expect([result.exitCode, result.stateLost]).toEqual([1, false]);
    expect(result.stderr).toMatch(/RangeError|SyntaxError|InternalError/);
    await goesOn();
  });

  it("cannot run a block whose brackets are nested absurdly deep", async () => {
    const result = await run("(".repeat(200_000));
    expect([result.exitCode, result.stateLost]).toEqual([1, false]);
    await goesOn();
  });

  it.each([
    ["a loop", "for (;;);"],
    ["a loop that catches everything", "for (;;) { try { for (;;); } catch {} finally { continue } }"],
    ["a regular expression", "/(x+x+)+y/.test('x'.repeat(100))"],
    ["promises", "const next = () => Promise.resolve().then(next); await next();"],
    ["a timer", "setInterval(() => {}, 10)"],
  ])("is ended when %s never ends", async (_name, code) => {
    const result = await run(code, { timeoutMs: 1000 });
    expect([result.exitCode, result.timedOut, result.stateLost]).toEqual([124, true, true]);
    await goesOn();
  });

  it("ends with process.exit(), whatever code follows", async () => {
    const code =
      "setTimeout(() => console.log('late'), 0); try { process.exit(3); } catch { console.log('caught'); } finally { console.log('finally'); }";
    const result = await run(code);
    expect([result.exitCode, result.output, result.stateLost]).toEqual([3, "", false]);
    await goesOn();
  });

  it("harms only itself when it changes built-in objects", async () => {
    const code = `
Promise.prototype.then = () => { throw new Error("then"); };
JSON.stringify = () => "{}"; JSON.parse = () => ({});
Array.prototype.map = Array.prototype.push = () => { throw new Error("array"); };
Object.prototype.op = "exit"; Object.defineProperty(Object.prototype, "error", { get: () => "ENOENT" });
globalThis.process = globalThis.console = undefined;`;
    const result = await run(code);
    expect(result.exitCode).toBe(0);
    await run("1");
    await executor.restart();
    await goesOn();
  });
});

function addressOf(address: AddressInfo | string | null): AddressInfo {
  if (address === null || typeof address === "string") throw new Error("The server has no address.");
  return address;
}
