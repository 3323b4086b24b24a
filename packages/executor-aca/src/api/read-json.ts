import { BackendUnavailableError } from "@fenced/core";
import type { Dispatcher } from "undici";
import type { z } from "zod";
import { ConnectionError } from "../http/service-error.ts";

/**
 * The body of an answer, checked.
 *
 * @throws BackendUnavailableError if it has another shape, ConnectionError if it does not come in full.
 */
export async function readJson<T>({ body }: Dispatcher.ResponseData, schema: z.ZodType<T>): Promise<T> {
  const text = await body.text().catch((error: unknown) => {
    throw new ConnectionError(error);
  });
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    value = undefined;
  }
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  throw new BackendUnavailableError(
    `The session pool answered with something else than its API says: ${text.slice(0, 200)}`,
    {
      remedy: "Check `poolManagementEndpoint` and `apiVersion`.",
      cause: parsed.error,
    },
  );
}
