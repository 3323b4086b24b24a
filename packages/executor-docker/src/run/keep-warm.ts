import type { PlaceLanguages } from "@fenced/executor-kit";
import type { DockerExecutorOptions } from "../docker-executor-options.ts";
import type { BlockRunner } from "./exec-runner.ts";

/** The parts of a container that a waiting interpreter needs. */
interface PythonPlace {
  readonly container: { readonly runner: BlockRunner };
  readonly languages: PlaceLanguages;
}

/**
 * Keeps an interpreter waiting for Python blocks, if the options ask for it. Does nothing if `initCommand`, or a
 * command with arguments of its own, means that a bare interpreter cannot run the blocks.
 */
export function keepWarm(
  { container, languages }: PythonPlace,
  { warm = false, initCommand }: DockerExecutorOptions,
  env: Readonly<Record<string, string>>,
): void {
  const [python, ...words] = languages.found.get("python")?.command ?? [];
  if (warm === false || python === undefined || words.length > 0 || initCommand !== undefined) return;
  container.runner.keepWarm?.({ python, ...warm, env });
}
