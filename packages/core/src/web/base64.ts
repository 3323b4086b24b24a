const chunkBytes = 0x80_00;

/** Node's own functions are ten times as fast as these; browsers, which read what servers write, do not have them. */
const node: typeof Buffer | undefined = globalThis.Buffer;

/** Encodes bytes as base64. */
export function toBase64(bytes: Uint8Array): string {
  if (node) return node.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("base64");
  let binary = "";
  for (let start = 0; start < bytes.length; start += chunkBytes) {
    binary += String.fromCharCode(...bytes.subarray(start, start + chunkBytes));
  }
  return btoa(binary);
}

/** Decodes base64 text with padding. @throws TypeError if it is not valid. */
export function fromBase64(text: string): Uint8Array {
  if (text.length % 4 !== 0 || !/^[A-Za-z0-9+/]*={0,2}$/.test(text)) throw new TypeError("This text is not base64");
  const padding = text.endsWith("==") ? 2 : Number(text.endsWith("="));
  const bytes = new Uint8Array((text.length / 4) * 3 - padding);
  if (node) {
    node.from(bytes.buffer).write(text, "base64");
    return bytes;
  }
  const binary = atob(text);
  for (let index = 0; index < binary.length; index += 1) bytes[index] = binary.charCodeAt(index);
  return bytes;
}
