import type * as z from "zod";
import type { RunRecorder } from "../record/run-record.ts";
import { objectOption } from "./check-options.ts";

/** A `RunRecorder`. */
export const recordOption: z.ZodType<RunRecorder> = objectOption<RunRecorder>(
  ["begin", "add"],
  "a record, such as recordFile(path)",
);
