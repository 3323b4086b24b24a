import { existsSync, realpathSync } from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";
import { packageOf } from "../components/resolve-package.ts";
import { BackendUnavailableError } from "../errors/backend-unavailable-error.ts";

/** The program's main script and working directory, from which an application's packages are found. */
export function applicationPlaces(): string[] {
  const places = [path.join(process.cwd(), "main.js")];
  const [, mainScript] = process.argv;
  if (mainScript === undefined || !existsSync(mainScript)) return places;
  // A command in a bin folder is a link to the script; the package may be installed at either place.
  return [mainScript, realpathSync(mainScript), ...places];
}

/** A module's own location, unless it was bundled to CommonJS, which leaves `import.meta.url` undefined. */
export function ownPlace(url: string | undefined): string[] {
  return url === undefined ? [] : [url];
}

/** The module that asks for a package. */
export interface PackageSeeker {
  /** Its `import.meta.url`; bundlers to CommonJS leave that `undefined`. */
  readonly url: string | undefined;
  /**
   * Packages on the way from an application to the one that is asked for, each a dependency of an earlier one or of the
   * application. The first is the one that people install.
   */
  readonly through: readonly [string, ...string[]];
}

/**
 * Finds a file of a package that is not part of a bundle: from the module that asks, or, where a bundler has moved that,
 * from the program's main script or its working directory.
 *
 * @param specifier - as for `require`.
 * @throws BackendUnavailableError if the package is not installed.
 */
export function findPackage(specifier: string, { url, through }: PackageSeeker): string {
  const places = [...ownPlace(url), ...applicationPlaces()];
  // Strict installers put a package where only those find it that depend on it.
  for (const name of through) {
    places.push(
      ...places.map((place) => resolveFrom(place, `${name}/package.json`)).filter((each) => each !== undefined),
    );
  }
  for (const place of places) {
    const file = resolveFrom(place, specifier);
    if (file !== undefined) return file;
  }
  throw new BackendUnavailableError(`The package ${packageOf(specifier)} was not found`, {
    remedy: `Run \`npm install ${through[0]}\` where the program runs: not everything can be part of a bundle.`,
  });
}

function resolveFrom(place: string, specifier: string): string | undefined {
  try {
    return createRequire(place).resolve(specifier);
  } catch {
    return undefined;
  }
}

/**
 * Loads a CommonJS package, of which bundlers then see nothing: one that they cannot bundle, or that only some programs
 * need.
 *
 * @throws BackendUnavailableError if it is not installed.
 */
export function loadPackage(specifier: string, seeker: PackageSeeker): unknown {
  const file = findPackage(specifier, seeker);
  const loaded: unknown = createRequire(file)(file);
  return loaded;
}
