import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import path from "node:path";
import { BackendUnavailableError } from "@fenced/core";
import { findPackage } from "@fenced/core/runtime";
import type { DockerClient } from "@fenced/docker-daemon";
import { textField } from "../fields.ts";
import type { DockerJupyterServerOptions } from "./docker-server-options.ts";

/** How to build an image. */
type ImageSettings = Pick<DockerJupyterServerOptions, "baseImage" | "pipPackages" | "onProgress">;

const owner = "@fenced/executor-jupyter";
const contextFiles = ["Dockerfile", "serve.py"];

/** Builds the image of this package's Dockerfile, unless one with the same settings exists; returns its name. */
export async function buildJupyterImage(docker: DockerClient, settings: ImageSettings): Promise<string> {
  const { baseImage = "python:3.12-slim", pipPackages = [], onProgress } = settings;
  const manifest = findPackage(`${owner}/package.json`, { url: import.meta.url, through: [owner] });
  const context = path.join(path.dirname(manifest), "docker");
  const buildargs = { BASE_IMAGE: baseImage, PIP_PACKAGES: pipPackages.join(" ") };
  const texts = await Promise.all(contextFiles.map((file) => readFile(path.join(context, file), "utf8")));
  const recipe = texts.join("") + JSON.stringify(buildargs);
  const name = `fenced-jupyter:${createHash("sha256").update(recipe).digest("hex").slice(0, 16)}`;
  const present = await docker
    .getImage(name)
    .inspect()
    .catch(() => undefined);
  if (present) return name;
  try {
    const stream = await docker.buildImage({ context, src: contextFiles }, { t: name, buildargs });
    await follow(docker, stream, onProgress);
  } catch (cause) {
    throw new BackendUnavailableError(`The Jupyter image could not be built: ${String(cause)}`, {
      remedy: `Make sure that ${baseImage} can be pulled and that pip reaches an index, or set \`image\` to a finished image.`,
      cause,
    });
  }
  return name;
}

async function follow(
  docker: DockerClient,
  stream: NodeJS.ReadableStream,
  onProgress: ((line: string) => void) | undefined,
): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    docker.modem.followProgress(
      stream,
      (error: Error | null, steps: unknown[]) => {
        const failure = textField(steps.at(-1), "error");
        if (error) reject(error);
        else if (failure !== "") reject(new Error(failure));
        else resolve();
      },
      (step: unknown) => {
        const line = (textField(step, "stream") || textField(step, "status")).trim();
        if (line !== "") onProgress?.(line);
      },
    );
  });
}
