// Does not use Buffer, because browsers read what servers write.
const chunkBytes = 0x80_00;

/** Encodes bytes as base64. */
export function toBase64(bytes: Uint8Array): string {
  let binary = "";
  for (let start = 0; start < bytes.length; start += chunkBytes) {
    binary += String.fromCharCode(...bytes.subarray(start, start + chunkBytes));
  }
  return btoa(binary);
}

/** Decodes base64 text. @throws if it is not valid base64. */
export function fromBase64(text: string): Uint8Array {
  return Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
}
