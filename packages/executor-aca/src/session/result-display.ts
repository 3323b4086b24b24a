import { randomUUID } from "node:crypto";
import { mkdir, writeFile } from "node:fs/promises";
import path from "node:path";
import type { Display, JsonValue } from "@fenced/core";
import type { BlockEvent } from "@fenced/executor-kit";
import { z } from "zod";

/** The value of a block's last expression as a reader sees it: pictures or text. */
export interface BlockValue {
  readonly displays: readonly Display[];
  readonly text: string | undefined;
}

/** Pictures that one block can show. */
const mostPictures = 100;
const image = z.object({ type: z.literal("image"), format: z.string().default("png"), base64_data: z.string() });
const images = z.union([image.transform((one) => [one]), z.array(image).min(1).max(mostPictures)]);

/**
 * Reads the service's `executionResult`.
 *
 * @param directory - returns where to save pictures; called only if there are any.
 */
export async function readValue(result: unknown, directory: () => Promise<string>): Promise<BlockValue> {
  const pictures = images.safeParse(result);
  if (pictures.success) {
    const place = await directory();
    return { displays: await Promise.all(pictures.data.map((each) => savePicture(each, place))), text: undefined };
  }
  if (result === null || result === undefined || result === "") return { displays: [], text: undefined };
  return { displays: [], text: typeof result === "string" ? result : textOf(result) };
}

function textOf(result: unknown): string {
  try {
    return JSON.stringify(result);
  } catch {
    return "(a value that is nested too deeply to show)";
  }
}

/** What a block displayed: pictures and other rich content as a display, plain text as output. */
export async function displayOf(
  bundle: Readonly<Record<string, JsonValue>>,
  directory: () => Promise<string>,
): Promise<BlockEvent> {
  const types = Object.keys(bundle);
  if (types.every((type) => type === "text/plain")) {
    const text = bundle["text/plain"] ?? "";
    return { type: "stdout", data: `${typeof text === "string" ? text : JSON.stringify(text)}\n` };
  }
  const data: Record<string, string | Uint8Array | JsonValue> = {};
  const files: string[] = [];
  for (const [type, content] of Object.entries(bundle)) {
    const format = /^image\/(?!svg)([a-z0-9]{1,8})$/i.exec(type)?.[1];
    if (format === undefined || typeof content !== "string") {
      data[type] = content;
      continue;
    }
    const picture = await savePicture({ type: "image", format, base64_data: content }, await directory());
    Object.assign(data, picture.data);
    files.push(...picture.files);
  }
  return { type: "display", display: { data, files } };
}

async function savePicture({ format, base64_data: data }: z.infer<typeof image>, directory: string): Promise<Display> {
  const name = /^[a-z0-9]{1,8}$/i.test(format) ? format.toLowerCase() : "bin";
  const bytes = new Uint8Array(Buffer.from(data, "base64"));
  const file = path.resolve(directory, `${randomUUID()}.${name}`);
  await mkdir(directory, { recursive: true });
  await writeFile(file, bytes);
  const content: string | Uint8Array | JsonValue = bytes;
  return { data: { [name === "jpg" ? "image/jpeg" : `image/${name}`]: content }, files: [file] };
}
