import type { JsonValue } from "../json-value.ts";

/** The same content in several MIME types; a reader picks the richest one that it can show. */
export type MimeBundle = Readonly<Record<string, string | Uint8Array | JsonValue>>;

/** One rich output of a block: a plot, a table, a formula. */
export interface Display {
  /** MIME type to content: text for `text/*`, `image/svg+xml` and JSON types, `Uint8Array` for binary. */
  readonly data: MimeBundle;
  /** Absolute paths on the host of the files in which the executor saved this output. */
  readonly files: readonly string[];
}
