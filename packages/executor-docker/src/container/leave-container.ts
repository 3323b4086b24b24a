import type { DockerExecutorOptions } from "../docker-executor-options.ts";
import type { ContainerWorkspace } from "../workspace/container-workspace.ts";
import type { RunningContainer } from "./running-container.ts";

/** A container that blocks ran in. */
export interface UsedContainer {
  readonly container: RunningContainer;
  readonly workspace: ContainerWorkspace;
  /** Somebody else created it, so it is neither ended nor removed. */
  readonly foreign: boolean;
}

/** Ends and removes a container, or leaves it behind without anything that blocks started, depending on the options. */
export async function leaveContainer(
  { container, workspace, foreign }: UsedContainer,
  { stopContainer = true, autoRemove = true }: DockerExecutorOptions,
): Promise<void> {
  if (container.lost) {
    if (stopContainer && autoRemove && !foreign) await container.end(true);
    return;
  }
  await workspace.settle();
  if (stopContainer && !foreign) {
    await container.end(autoRemove);
    if (!autoRemove) warnKept(container.name, "is kept, ended");
    return;
  }
  try {
    await container.runner.reset();
  } finally {
    // Detach even from a supervisor that code has stopped: if it resumes, the end of its input makes it end everything.
    container.detach();
  }
  if (!foreign) warnKept(container.name, "runs on");
}

function warnKept(name: string, how: string): void {
  process.emitWarning(`The container ${name} ${how}, as the executor's options say.`, {
    code: "FENCED_DOCKER_KEPT",
    detail: `Use it again with \`containerName: "${name}", reuse: true\`, or remove it: docker rm --force --volumes ${name}`,
  });
}
