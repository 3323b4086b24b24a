import { BackendUnavailableError } from "@fenced/core";
import type { PlaceLanguages } from "@fenced/executor-kit";
import { interpreterProgram, type StatefulPlace } from "@fenced/executor-kit/supervisor";
import type { DockerExecutorOptions } from "../docker-executor-options.ts";
import { commandAfterInit } from "./block-program.ts";
import type { BlockRunner } from "./exec-runner.ts";

/** The parts of a container that an interpreter needs which lives from block to block. */
interface Place {
  readonly container: { readonly runner: BlockRunner };
  readonly languages: PlaceLanguages;
}

/**
 * Where and how such an interpreter starts.
 *
 * @throws BackendUnavailableError if there is no Python.
 */
export function interpreterPlace(
  { container: { runner }, languages }: Place,
  { options, env, directory }: InterpreterSettings,
): StatefulPlace {
  const program = interpreterProgram(languages, { env, commands: `${directory}/bin`, warm: options.warm });
  const { openInterpreter, forkInterpreter, ping } = runner;
  if (!openInterpreter || !forkInterpreter || !ping) {
    throw new BackendUnavailableError("A stateful session needs a Python that the supervisor can run by, too", {
      remedy: "Use an image that has Python 3.8 or later, or leave `stateful` out.",
    });
  }
  return {
    supervisor: {
      openInterpreter: openInterpreter.bind(runner),
      forkInterpreter: forkInterpreter.bind(runner),
      ping: ping.bind(runner),
    },
    program: { ...program, command: commandAfterInit(program.command, options.initCommand) },
  };
}

/** What it is started with. */
interface InterpreterSettings {
  readonly options: DockerExecutorOptions;
  readonly env: Readonly<Record<string, string>>;
  /** A directory of the session in the container. */
  readonly directory: string;
}
