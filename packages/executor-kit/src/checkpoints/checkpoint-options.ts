import type { CheckpointOptions, CheckpointStore, RestoreOption } from "@fenced/core";
import { objectOption, type OptionSchemas, optionsSchema, signalOption, wholeNumberOption } from "@fenced/core/options";
import { z } from "zod";

const storeOption: z.ZodType<CheckpointStore> = objectOption<CheckpointStore>(
  ["begin", "open"],
  "a store of @fenced/checkpoints, such as directoryStore(path)",
);

/** The schema of the option `restore` of all executors. */
export const restoreOption: z.ZodType<RestoreOption> = optionsSchema({
  store: storeOption,
  id: z.string().regex(/^[\da-f]{64}$/, "must be the id of a checkpoint: 64 hexadecimal digits"),
} satisfies OptionSchemas<RestoreOption>);

/** The schema of the options of `checkpoint()`. */
export const checkpointOptions: z.ZodType<CheckpointOptions> = optionsSchema({
  store: storeOption,
  variables: z.boolean().exactOptional(),
  maxBytes: wholeNumberOption({ from: 0, unit: "bytes" }).exactOptional(),
  signal: signalOption.exactOptional(),
} satisfies OptionSchemas<CheckpointOptions>);
