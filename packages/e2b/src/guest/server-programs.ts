import { type ExecutorProcesses, InvalidInputError, type ListedProcess } from "@fenced/core";

/** The first line of programs that this server runs in sandboxes for itself, by which a later one knows them. */
const mark = "# Started by fenced-e2b\n";

/** The command of a Python program that this server needs in a sandbox. */
export function serverProgram(text: string): readonly [string, ...string[]] {
  return ["python3", "-ISc", `${mark}${text}`];
}

/**
 * Ends the programs that an earlier server has started for itself: nobody talks to them any more. Call it before this server
 * starts its own. Does not wait for their end.
 *
 * @throws as `ExecutorProcesses.list` does.
 */
export async function endServerPrograms(
  processes: ExecutorProcesses,
  onError: (error: unknown) => void,
): Promise<void> {
  const end = async ({ pid }: ListedProcess): Promise<void> => {
    const program = await processes.connect(pid);
    await program.kill();
  };
  for (const each of await processes.list()) {
    if (!isServerProgram(each)) continue;
    end(each).catch((error: unknown) => {
      // It has ended by itself.
      if (!InvalidInputError.isInstance(error)) onError(error);
    });
  }
}

function isServerProgram({ command: [, , text] }: ListedProcess): boolean {
  return text?.startsWith(mark) === true;
}
