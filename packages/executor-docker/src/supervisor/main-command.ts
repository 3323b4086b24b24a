import { shellProgram } from "./shell-program.ts";
import { supervisorProgram } from "./supervisor-program.ts";

/** What the supervisor is told when it starts. */
export interface SupervisorConfig {
  /** A directory of the session in the container; made by the supervisor. */
  readonly directory: string;
  /** A file in the work directory whose content the supervisor says, and to which it adds an `r`. Default: none. */
  readonly probe: string | undefined;
  /** Programs to look for. */
  readonly programs: readonly string[];
  /** `PATH` to look on. Default: the container's. */
  readonly path: string | undefined;
  /** Nothing else is meant to run in the container: a restart ends all processes in it. */
  readonly alone: boolean;
}

/**
 * The command that starts the supervisor, by Python where there is one, else the shell that stands in for it.
 * `-I -S` keeps files of the work directory and of the image from being imported.
 */
export function supervisorCommand({ directory, probe, programs, path, alone }: SupervisorConfig): string[] {
  const words = [directory, probe ?? "", path ?? "", alone ? "alone" : "", ...programs];
  return ["sh", "-c", bootProgram, "fenced", supervisorProgram, ...words];
}

/**
 * The command of a container that shall outlive this program. Its input is held open, and so it waits for ever without
 * any program that an image may lack.
 */
export const keeperCommand: readonly string[] = ["sh", "-c", "while read -r line; do :; done"];

const bootProgram = `supervisor=$1
shift
for python in python3 python; do
  if command -v "$python" >/dev/null 2>&1; then exec "$python" -I -S -X utf8 -c "$supervisor" "$@"; fi
done
directory=$1 probe=$2
shift 4
${shellProgram}`;
