import { BackendUnavailableError, parseJson } from "@fenced/core";
import type Docker from "dockerode";
import { z } from "zod";
import { answered, dockerReason, isNotFound } from "./daemon-calls.ts";
import { explainPull } from "./pull-failure.ts";

/** A progress report of the daemon about a pull. */
export interface PullProgress {
  readonly image: string;
  /** The daemon's status text: `"Downloading"`, `"Extracting"`, `"Pull complete"`. */
  readonly status: string;
  /** The layer it concerns; absent if it concerns the whole image. */
  readonly layer?: string;
  /** Bytes of the layer done so far, and in total; absent if the daemon does not report them. */
  readonly current?: number;
  readonly total?: number;
}

/** The image, and whether it may be pulled. */
export interface ImageRequest {
  readonly image: string;
  readonly pull: "missing" | "always" | "never";
  readonly onProgress?: ((progress: PullProgress) => void) | undefined;
}

const pullEvent = z.object({
  status: z.string().optional(),
  id: z.string().optional(),
  error: z.string().optional(),
  progressDetail: z.object({ current: z.number().optional(), total: z.number().optional() }).optional(),
});

/**
 * Pulls an image, unless the daemon has it.
 *
 * @param signal - cancels the pull.
 * @throws BackendUnavailableError if the image is missing and could not be pulled; `signal.reason` if it was aborted.
 */
export async function ensureImage(docker: Docker, request: ImageRequest, signal: AbortSignal): Promise<void> {
  if (request.pull !== "always" && (await hasImage(docker, request.image))) return;
  if (request.pull === "never") {
    throw new BackendUnavailableError(`The daemon has no image "${request.image}", and \`pull\` is "never"`, {
      remedy: `Run \`docker pull ${request.image}\`, or leave \`pull\` out.`,
      option: "pull",
    });
  }
  try {
    await pull(docker, request, signal);
  } catch (cause) {
    signal.throwIfAborted();
    const { why, remedy } = explainPull(request.image, dockerReason(cause));
    const without = request.pull === "always" ? " To use the one that is there, leave `pull` out." : "";
    throw new BackendUnavailableError(`The image "${request.image}" could not be pulled: ${why}`, {
      remedy: `${remedy}${without}`,
      cause,
    });
  }
}

async function hasImage(docker: Docker, image: string): Promise<boolean> {
  try {
    await answered(docker.getImage(image).inspect(), "image inspect");
    return true;
  } catch (error) {
    if (isNotFound(error)) return false;
    throw error;
  }
}

async function pull(docker: Docker, { image, onProgress }: ImageRequest, signal: AbortSignal): Promise<void> {
  // Without a tag, the API would pull all of them.
  const tagged = /[:@][^/]*$/.test(image) ? image : `${image}:latest`;
  const stream = await docker.pull(tagged, { abortSignal: signal });
  let text = "";
  for await (const chunk of stream) {
    const lines = (text + String(chunk)).split("\n");
    text = lines.pop() ?? "";
    for (const line of lines) report(line, image, onProgress);
  }
  report(text, image, onProgress);
}

/** Handles one line of the stream, which also carries errors, since the daemon has already answered with status 200. */
function report(line: string, image: string, onProgress: ImageRequest["onProgress"]): void {
  if (line.trim() === "") return;
  const { status = "", id, error, progressDetail } = pullEvent.parse(parseJson(line));
  if (error !== undefined) throw new Error(error);
  onProgress?.({
    image,
    status,
    ...(id === undefined ? {} : { layer: id }),
    ...(progressDetail?.current === undefined ? {} : { current: progressDetail.current }),
    ...(progressDetail?.total === undefined ? {} : { total: progressDetail.total }),
  });
}
