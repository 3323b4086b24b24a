import { FencedError, InvalidInputError } from "@fenced/core";
import { dockerReason, statusCode } from "@fenced/docker-daemon";
import type { SessionDirectories } from "@fenced/executor-kit";

/** True if the directory to mount is missing or not shared, which only the text of the daemon's error tells. */
export function isMissingSource(error: unknown): boolean {
  const known = /bind source path does not exist|no such file or directory|not shared from the host|mounts denied/i;
  return statusCode(error) !== undefined && known.test(dockerReason(error)) && !/exec:/.test(dockerReason(error));
}

/** The error for a `bindDir` that is not the work directory. */
export function notBound(bindDir: string, directories: SessionDirectories, reason: string): InvalidInputError {
  return new InvalidInputError(
    `\`bindDir\` ${JSON.stringify(bindDir)} is not ${directories.workDirectory} on the daemon's host: ${reason}`,
    { remedy: "Set it to the path that this machine's `workDir` has on the daemon's host." },
  );
}

/** The error for a `workDir` of a session that outlives its program, if the daemon cannot mount it. */
export function notMounted({ workDirectory }: SessionDirectories): InvalidInputError {
  return new InvalidInputError(
    `\`keepAliveMs\` needs a \`workDir\` that the daemon can mount, and ${workDirectory} is not on its host`,
    {
      remedy:
        "Leave `workDir` out, and copy files with `executor.files`; or set `bindDir` to the path that `workDir` has on the daemon's host.",
      option: "workDir",
    },
  );
}

/**
 * True if a container could not start because its image has no shell, which is reported by the daemon, its runtime, or
 * the init process that was to start the shell.
 */
export function lacksShell(error: unknown): boolean {
  const said = FencedError.isInstance(error) ? error.message : dockerReason(error);
  return /exec sh failed: No such file|"sh": executable file not found|`sh`:? (?:executable file )?not found/i.test(
    said,
  );
}

/** The error for an image without a shell. */
export function noShell(image: string, cause: unknown): InvalidInputError {
  return new InvalidInputError(`The image "${image}" has no shell named \`sh\`, which starts all programs`, {
    remedy: "Use an image with a shell, such as python:3-slim; distroless images have one in their debug variants.",
    option: "image",
    cause,
  });
}

/** True if a session's server could not start because its image has no Python. */
export function lacksPython(error: unknown): boolean {
  return FencedError.isInstance(error) && /there is no `python3` on the PATH/.test(error.message);
}

/** The error for an image whose sessions cannot outlive their programs. */
export function noServer(image: string, cause?: unknown): InvalidInputError {
  return new InvalidInputError(`\`keepAliveMs\` needs Python in the container, which the image "${image}" lacks`, {
    remedy: "Use an image that has Python 3.8 or later, or leave `keepAliveMs` out.",
    option: "image",
    cause,
  });
}
