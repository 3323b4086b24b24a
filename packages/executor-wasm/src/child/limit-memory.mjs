// WebAssembly has no option that limits a program's memory: the file itself declares the maximum. It is overwritten before the
// file is compiled; memory then cannot grow any further, whatever the program does.

const memorySection = 5;
const pageBytes = 65_536;

/**
 * Limits every WebAssembly program that has its own memory.
 *
 * @param {number} maxBytes
 */
export function limitMemory(maxBytes) {
  /** @type {any} - Only browser typings describe it. */
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
 * The file with a different maximum.
 *
 * @param {ArrayBuffer | ArrayBufferView} source
 * @param {number} maxBytes
 */
function withMaximum(source, maxBytes) {
  const bytes = ArrayBuffer.isView(source)
    ? new Uint8Array(source.buffer, source.byteOffset, source.byteLength)
    : new Uint8Array(source);
  // After the first eight bytes, which all files share, come sections: type, length, content.
  for (let at = 8; at < bytes.length;) {
    const length = readNumber(bytes, at + 1);
    const next = length.end + length.value;
    if (bytes[at] === memorySection) {
      const section = limitedSection(bytes, length.end, maxBytes);
      return new Uint8Array(Buffer.concat([bytes.subarray(0, at), Buffer.from(section), bytes.subarray(next)]));
    }
    at = next;
  }
  return bytes;
}

/**
 * @param {Uint8Array} bytes
 * @param {number} start - of the section's content: the number of memories, then flags, minimum and maximum of the first.
 * @param {number} maxBytes
 */
function limitedSection(bytes, start, maxBytes) {
  const count = readNumber(bytes, start);
  if (count.value !== 1) throw new Error("This WebAssembly program has several memories.");
  const flags = bytes[count.end] ?? 0;
  const least = readNumber(bytes, count.end + 1);
  const most = (flags & 1) === 1 ? readNumber(bytes, least.end).value : Infinity;
  const pages = Math.min(most, Math.max(least.value, Math.floor(maxBytes / pageBytes)));
  const content = [1, flags | 1, ...number(least.value), ...number(pages)];
  return [memorySection, ...number(content.length), ...content];
}

/**
 * @param {number} value
 * @returns {number[]}
 */
function number(value) {
  return value < 0x80 ? [value] : [(value & 0x7f) | 0x80, ...number(Math.floor(value / 128))];
}

/**
 * A number in WebAssembly's format (LEB128): seven bits a byte, the lowest first.
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
