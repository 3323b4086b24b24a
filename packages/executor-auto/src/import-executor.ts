import { BackendUnavailableError } from "@fenced/core";

/**
 * Imports an executor's package, which may not be installed.
 *
 * @param load - the `import()` of the package; it repeats the name, for bundlers and for types.
 * @throws BackendUnavailableError if it is not installed, or cannot be loaded.
 */
export async function importExecutor<Module>(packageName: string, load: () => Promise<Module>): Promise<Module> {
  try {
    return await load();
  } catch (cause) {
    const remedy = `Run: npm install ${packageName}`;
    if (isMissing(cause, packageName)) {
      throw new BackendUnavailableError(`The package ${packageName} is not installed`, { remedy, cause });
    }
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new BackendUnavailableError(`The package ${packageName} cannot be loaded: ${reason}`, { remedy, cause });
  }
}

/** Node quotes the name of the missing package; an installed package may lack another one. */
function isMissing(error: unknown, packageName: string): boolean {
  const code: unknown = error instanceof Error ? Reflect.get(error, "code") : undefined;
  return code === "ERR_MODULE_NOT_FOUND" && String(error).includes(`'${packageName}'`);
}
