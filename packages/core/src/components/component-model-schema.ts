import * as z from "zod";
import type { JsonObject } from "../json-value.ts";
import type { ComponentModel } from "./component-model.ts";

const jsonObject: z.ZodType<JsonObject> = z.record(z.string(), z.json());

/** The schema of a `ComponentModel`, for the config schemas of components that contain other components. */
export const componentModelSchema: z.ZodType<ComponentModel> = z.strictObject({
  provider: z.string(),
  componentType: z.string().min(1),
  version: z.int().min(1),
  config: jsonObject,
  label: z.string().exactOptional(),
  description: z.string().exactOptional(),
});
