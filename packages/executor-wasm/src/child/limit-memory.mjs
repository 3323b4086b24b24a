// WebAssembly has no option for the memory that a program may take: its file says it, in the maximum of its memory. It is written
// over before the file is compiled; memory then cannot grow any further, whatever the program does.

const memorySection = 5;
const pageBytes = 65_536;

/**
 * Holds every WebAssembly program with a memory of its own to a limit.
 *
 * @param {number} maxBytes
 */
export function limitMemory(maxBytes) {
  /** @type {any} - Its types come with browsers. */
  const library = Reflect.get(globalThis, "WebAssembly");
  const { instantiate, compile, Module } = library;
  const limited = (/** @type {any} */ source) =>
    ArrayBuffer.isView(source) || source instanceof ArrayBuffer ? withMaximum(source, maxBytes) : source;
  const replaced = {
    instantiate: (/** @type {any} */ source, /** @type {any} */ imports) => instantiate(limited(source), imports),
    compile: (/** @type {any} */ source) => compile(limited(source)),
    Module: new Proxy(Module, {
      construct: (target, [source]) => new target(limited(source)),
    }),
    instantiateStreaming: undefined,
    compileStreaming: undefined,
  };
  for (const [name, value] of Object.entries(replaced)) {
    Object.defineProperty(library, name, { value, writable: false, configurable: false });
  }
}

/**
 * The file with another maximum.
 *
 * @param {ArrayBuffer | ArrayBufferView} source
 * @param {number} maxBytes
 */
function withMaximum(source, maxBytes) {
  const bytes = ArrayBuffer.isView(source)
    ? Uint8Array.from(new Uint8Array(source.buffer, source.byteOffset, source.byteLength))
    : new Uint8Array(source.slice(0));
  // Behind the eight bytes that all files begin with, sections follow each other: type, length, content.
  for (let at = 8; at < bytes.length;) {
    const type = bytes[at];
    const length = readNumber(bytes, at + 1);
    if (type === memorySection) writeMaximum(bytes, length.end, maxBytes);
    at = length.end + length.value;
  }
  return bytes;
}

/**
 * @param {Uint8Array} bytes
 * @param {number} start - of the section's content: the number of memories, then flags, minimum and maximum of the first.
 * @param {number} maxBytes
 */
function writeMaximum(bytes, start, maxBytes) {
  const count = readNumber(bytes, start);
  const hasMaximum = ((bytes[count.end] ?? 0) & 1) === 1;
  if (count.value === 0) return;
  if (!hasMaximum) throw new Error("The memory of this WebAssembly program has no maximum that could be lowered.");
  const least = readNumber(bytes, count.end + 1);
  const most = readNumber(bytes, least.end);
  let pages = Math.min(most.value, Math.max(least.value, Math.floor(maxBytes / pageBytes)));
  // In as many bytes as before, so that nothing moves.
  for (let at = least.end; at < most.end; at += 1) {
    bytes[at] = (pages & 0x7f) | (at < most.end - 1 ? 0x80 : 0);
    pages >>>= 7;
  }
}

/**
 * A number of WebAssembly's own format: seven bits a byte, the lowest first.
 *
 * @param {Uint8Array} bytes
 * @param {number} start
 */
function readNumber(bytes, start) {
  let value = 0;
  for (let at = start, factor = 1; ; at += 1, factor *= 128) {
    const byte = bytes[at] ?? 0;
    value += (byte & 0x7f) * factor;
    if (byte < 0x80) return { value, end: at + 1 };
  }
}
