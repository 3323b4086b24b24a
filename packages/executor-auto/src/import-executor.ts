import { BackendUnavailableError } from "@fenced/core";

/**
 * Imports the package of an executor, which need not be installed.
 *
 * @param load - the `import()` of the package; its name is written there once more, for bundlers and for types.
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

/** Node names the package in quotes; a package that is there may miss another one. */
function isMissing(error: unknown, packageName: string): boolean {
  const code: unknown = error instanceof Error ? Reflect.get(error, "code") : undefined;
  return code === "ERR_MODULE_NOT_FOUND" && String(error).includes(`'${packageName}'`);
}
