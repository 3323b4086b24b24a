/** @param {{ ask: any, Buffer: any, EventEmitter: any }} world */
export function makeProcess({ ask, Buffer, EventEmitter }) {
  const writer = (/** @type {1 | 2} */ to) => ({
    fd: to,
    isTTY: false,
    write(/** @type {any} */ data, /** @type {any[]} */ ...rest) {
      ask({ op: "print", to }, typeof data === "string" ? Buffer.from(data) : data);
      rest.find((each) => typeof each === "function")?.();
      return true;
    },
    end(/** @type {any} */ data) {
      if (data !== undefined) this.write(data);
    },
    on: () => {},
    once: () => {},
  });
  let input = Buffer.alloc(0);
  const stdin = {
    fd: 0,
    isTTY: false,
    setEncoding: () => stdin,
    resume: () => stdin,
    /** @type {(event: string, call: (data?: any) => void) => any} */
    on(event, call) {
      if (event === "data" && input.length > 0) queueMicrotask(() => call(input.toString()));
      if (event === "end" || event === "close") queueMicrotask(() => queueMicrotask(() => call()));
      return stdin;
    },
    async *[Symbol.asyncIterator]() {
      if (input.length > 0) yield input;
    },
  };
  const started = Date.now();
  const process = Object.assign(new EventEmitter(), {
    argv: ["node", ""],
    env: /** @type {Record<string, string>} */ ({}),
    exitCode: /** @type {number | undefined} */ (undefined),
    pid: 1,
    platform: "wasi",
    arch: "wasm32",
    version: "v20.19.0",
    versions: { node: "20.19.0" },
    execPath: "/node",
    stdout: writer(1),
    stderr: writer(2),
    stdin,
    cwd: () => "/workspace",
    uptime: () => (Date.now() - started) / 1000,
    hrtime: Object.assign(() => [Math.floor(Date.now() / 1000), (Date.now() % 1000) * 1e6], {
      bigint: () => BigInt(Date.now()) * 1_000_000n,
    }),
    memoryUsage: () => ({ rss: 0, heapTotal: 0, heapUsed: 0, external: 0, arrayBuffers: 0 }),
    nextTick: (/** @type {any} */ call, /** @type {any[]} */ ...values) => queueMicrotask(() => call(...values)),
    exit(code = process.exitCode ?? 0) {
      ask({ op: "exit", code: Number(code) });
      // The engine stops here; the program cannot catch it.
      for (;;);
    },
  });
  Object.defineProperty(process, Symbol.toStringTag, { value: "process" });
  /** @type {(file: string, env: Record<string, string>, bytes: any) => void} */
  const begin = (file, env, bytes) => {
    process.argv = ["node", file];
    process.env = { ...env };
    process.exitCode = undefined;
    process.removeAllListeners();
    input = bytes;
  };
  return { process, begin };
}
