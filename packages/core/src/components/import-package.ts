import { ComponentError } from "../errors/component-error.ts";
import { applicationPlaces, ownPlace } from "../runtime/package-places.ts";
import { packageOf, resolvePackage } from "./resolve-package.ts";

/**
 * Imports a package that this package, the program's main script or its working directory can resolve. Strict
 * installers such as pnpm put an application's packages where only the application finds them.
 *
 * @param importModule - how to import it. Default: try these places in turn.
 * @throws ComponentError if the package is not installed, or throws while it loads.
 */
export async function importPackage(
  specifier: string,
  importModule: (specifier: string) => Promise<unknown> = importFromAnywhere,
): Promise<unknown> {
  try {
    return await importModule(specifier);
  } catch (error) {
    throw error instanceof PackageMissing ? notInstalled(specifier, error) : broken(specifier, error);
  }
}

/** Single executable applications can import nothing but modules of Node. */
const missingCodes = ["ERR_MODULE_NOT_FOUND", "ERR_UNKNOWN_BUILTIN_MODULE"];

class PackageMissing extends Error {
  /** For programs that install packages in a way of their own. */
  readonly code = "FENCED_PACKAGE_MISSING";
}

// The comments keep bundlers from replacing what only Node can do when the program runs.
async function importFromAnywhere(specifier: string): Promise<unknown> {
  try {
    return await import(/* webpackIgnore: true */ /* turbopackIgnore: true */ /* @vite-ignore */ specifier);
  } catch (error) {
    if (!hasMissingCode(error)) throw error;
    // This package's own location comes last: `require` may see more from there than `import` does (NODE_PATH). If the
    // package is there but one of its dependencies is missing, importing it again reports that.
    const url = [...applicationPlaces(), ...ownPlace(import.meta.url)]
      .map((place) => resolvePackage(specifier, place))
      .find((found) => found !== undefined);
    if (url === undefined) throw new PackageMissing(`${specifier} was not found`, { cause: error });
    return import(/* webpackIgnore: true */ /* turbopackIgnore: true */ /* @vite-ignore */ url);
  }
}

function hasMissingCode(error: unknown): boolean {
  // In a context of `node:vm`, errors of Node are not instances of that context's Error.
  return typeof error === "object" && error !== null && "code" in error && missingCodes.includes(String(error.code));
}

function notInstalled(specifier: string, cause: unknown): ComponentError {
  return new ComponentError(`The package ${specifier} is not installed`, {
    remedy: `Run: npm install ${packageOf(specifier)}`,
    cause,
  });
}

function broken(specifier: string, cause: unknown): ComponentError {
  const reason = cause instanceof Error ? cause.message : String(cause);
  return new ComponentError(`The package ${specifier} cannot be imported: ${reason}`, {
    remedy: "Import it in a separate program to see the whole error, or reinstall it.",
    cause,
  });
}
