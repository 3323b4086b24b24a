import type { PlaceLanguages } from "@fenced/executor-kit";
import { warmPrograms } from "@fenced/executor-kit/supervisor";
import type { DockerExecutorOptions } from "../docker-executor-options.ts";
import type { BlockRunner } from "./exec-runner.ts";

/** The parts of a container that a waiting interpreter needs. */
interface WarmPlace {
  readonly container: { readonly runner: BlockRunner };
  readonly languages: PlaceLanguages;
}

/**
 * Keeps interpreters waiting for blocks, if the options ask for it, `initCommand` need not run before each block, and no
 * interpreter lives on in which hostile code could wait for them.
 */
export function keepWarm(
  { container, languages }: WarmPlace,
  { warm, initCommand, stateful }: DockerExecutorOptions,
  env: Readonly<Record<string, string>>,
): void {
  const settings = initCommand === undefined && stateful !== true ? warmPrograms(languages, warm, env) : undefined;
  if (settings) container.runner.keepWarm?.(settings);
}
