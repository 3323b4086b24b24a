import { z } from "zod";
import { withoutMarks } from "../http/exact-numbers.ts";

/** The value of a block's last expression as a reader sees it: pictures or text. */
export interface BlockValue {
  /** By type, in base64. */
  readonly pictures: readonly Readonly<Record<string, string>>[];
  readonly text: string | undefined;
}

/** Pictures that one block can show. */
const mostPictures = 100;
const image = z
  .object({ type: z.literal("image"), format: z.string().default("png"), base64_data: z.string() })
  .transform(({ format, base64_data: data }) => ({ [typeOf(format)]: data }));
const images = z.union([image.transform((one) => [one]), z.array(image).min(1).max(mostPictures)]);

/** Reads the service's `executionResult`. */
export function readValue(result: unknown): BlockValue {
  const pictures = images.safeParse(result);
  if (pictures.success) return { pictures: pictures.data, text: undefined };
  if (result === null || result === undefined || result === "") return { pictures: [], text: undefined };
  return { pictures: [], text: withoutMarks(result) };
}

function typeOf(format: string): string {
  const name = /^[a-z0-9+]{1,8}$/i.test(format) ? format.toLowerCase() : "bin";
  return `image/${name === "jpg" ? "jpeg" : name}`;
}
