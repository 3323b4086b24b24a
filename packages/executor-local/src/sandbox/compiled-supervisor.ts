import { compileSupervisor } from "@fenced/executor-kit/supervisor";

/** What each Python of this host has compiled, for all later sandboxes of this program. */
const compiled = new Map<string, Uint8Array | undefined>();

/**
 * The supervisor's program as a Python of this host has compiled it. The first call for a Python has it compiled beside
 * the start of the first sandbox, which compiles the program itself.
 *
 * @param python - a Python that no code can have changed.
 * @param trustedPath - where it finds other programs, if it is a script.
 */
export function compiledSupervisor(python: string | undefined, trustedPath: string): Uint8Array | undefined {
  if (python === undefined) return undefined;
  if (!compiled.has(python)) {
    compiled.set(python, undefined);
    void compileSupervisor(python, trustedPath).then((bytes) => compiled.set(python, bytes));
  }
  return compiled.get(python);
}
