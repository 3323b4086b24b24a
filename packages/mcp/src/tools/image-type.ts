const signatures: readonly (readonly [type: string, pattern: RegExp])[] = [
  ["image/png", /^\x89PNG\r\n/],
  ["image/jpeg", /^\xff\xd8\xff/],
  ["image/gif", /^GIF8[79]a/],
  ["image/webp", /^RIFF.{4}WEBP/s],
];

/** The MIME type of an image that models support, detected from its first bytes regardless of its name. */
export function imageType(bytes: Uint8Array): string | undefined {
  const head = Buffer.from(bytes.subarray(0, 16)).toString("latin1");
  return signatures.find(([, pattern]) => pattern.test(head))?.[0];
}
