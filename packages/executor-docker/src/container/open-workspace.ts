import { InvalidInputError } from "@fenced/core";
import { type Daemon, giveDirectory } from "@fenced/docker-daemon";
import type { CommandLineRequest, SessionDirectories } from "@fenced/executor-kit";
import { HostWorkspace, type PlaceWorkspace, pythonOf, SentWorkspace } from "@fenced/executor-kit/supervisor";
import type { DockerExecutorOptions } from "../docker-executor-options.ts";
import { defaultImage, workspacePathOf } from "./container-options.ts";
import type { OpenContainer } from "./open-container.ts";
import { noServer } from "./start-failures.ts";
import { VolumeWorkspace } from "./volume-workspace.ts";

/** What a container's workspace depends on besides the container. */
export interface WorkspaceRequest extends Pick<
  CommandLineRequest<DockerExecutorOptions>,
  "options" | "functions" | "functionsModule"
> {
  readonly directories: SessionDirectories;
  readonly daemon: Daemon;
}

/**
 * Opens the work directory of a container. The files of a session that outlives this program are reached only through
 * its supervisor, from wherever that is.
 *
 * @throws InvalidInputError if the container has no supervisor, and nothing else can carry files.
 */
export async function openWorkspace(opened: OpenContainer, request: WorkspaceRequest): Promise<PlaceWorkspace> {
  const { options, directories } = request;
  if ((options.keepAliveMs ?? 0) > 0) return openSent(opened, request);
  if (opened.kind === "volume") return openVolume(opened, request);
  return new HostWorkspace(directories, { keepFiles: keepsFiles(options), seenAs: workspacePathOf(options) });
}

async function openSent({ container, kind }: OpenContainer, request: WorkspaceRequest): Promise<SentWorkspace> {
  const { options, functions, functionsModule, directories, daemon } = request;
  const { id, inventory, supervisor } = container;
  if (!supervisor) throw noServer(options.image ?? defaultImage);
  if (kind === "volume") await giveDirectory(daemon.docker.getContainer(id), workspacePathOf(options), inventory.owner);
  return new SentWorkspace({
    supervisor,
    python: pythonOf(inventory),
    path: workspacePathOf(options),
    filePrefix: directories.filePrefix,
    keepFiles: keepsFiles(options),
    functionsModule,
    // The directory of an earlier program may be another host's.
    ...(kind === "bind" && { onHost: directories.workDirectory }),
    hasPackage: functions.some(({ language }) => language === "javascript"),
  });
}

async function openVolume({ container }: OpenContainer, request: WorkspaceRequest): Promise<VolumeWorkspace> {
  const { options, directories, daemon } = request;
  const { id, inventory, supervisor } = container;
  if (!supervisor) throw noCarrier(options);
  await giveDirectory(daemon.docker.getContainer(id), workspacePathOf(options), inventory.owner);
  const python = pythonOf(inventory);
  const workspace = new VolumeWorkspace(directories, {
    path: workspacePathOf(options),
    python,
    supervisor,
    keepFiles: keepsFiles(options),
  });
  await workspace.prepare();
  return workspace;
}

function keepsFiles({ cleanupTempFiles }: DockerExecutorOptions): boolean {
  return cleanupTempFiles === false;
}

function noCarrier({ workDir, image = defaultImage }: DockerExecutorOptions): InvalidInputError {
  const what =
    workDir === undefined ? "The work directory is a volume" : "`workDir` cannot be mounted into the container";
  return new InvalidInputError(
    `${what}, and files travel there only through Python, which the image "${image}" lacks`,
    {
      remedy:
        "Use an image that has Python 3.8 or later, or set `workDir` to a directory that the daemon can mount, which a remote daemon cannot.",
    },
  );
}
