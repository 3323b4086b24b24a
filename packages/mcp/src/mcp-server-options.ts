import type { ModelOutputLimits } from "@fenced/core";
import { modelOutputLimits, wholeNumberOption, type OptionSchemas } from "@fenced/core/options";

/** Limits of what a server returns; none is required. */
export interface McpServerOptions extends ModelOutputLimits {
  /** Maximum bytes of a file that `read_file` returns. Default: 3,750,000, which is 5 MB in base64. */
  readonly maxFileBytes?: number;
  /** Maximum number of files that `list_files` returns. Default: 1,000. */
  readonly maxFiles?: number;
}

/** The schemas of the options. */
export const serverLimits: OptionSchemas<McpServerOptions> = {
  ...modelOutputLimits,
  maxFileBytes: wholeNumberOption({ from: 0, unit: "bytes" }).exactOptional(),
  maxFiles: wholeNumberOption({ from: 0 }).exactOptional(),
};
