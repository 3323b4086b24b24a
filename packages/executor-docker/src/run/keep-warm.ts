import type { PlaceLanguages } from "@fenced/executor-kit";
import type { DockerExecutorOptions } from "../docker-executor-options.ts";
import type { BlockRunner } from "./exec-runner.ts";

/** A container, as far as a waiting interpreter is concerned. */
interface PythonPlace {
  readonly container: { readonly runner: BlockRunner };
  readonly languages: PlaceLanguages;
}

/**
 * Has an interpreter wait for Python blocks, if the options ask for it. Where blocks are not run by an interpreter alone, because
 * of `initCommand` or a command with arguments of its own, none waits.
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
