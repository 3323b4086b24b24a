import { ComponentError } from "../errors/component-error.ts";

/** The two halves of a `ComponentModel.provider`. */
export interface Provider {
  /** The module to import. */
  readonly specifier: string;
  /** The export to load: the component's class. */
  readonly exportName: string;
}

/** A package directly in the scope, with no subpath and no other spelling that could lead elsewhere. */
const fencedPackage = /^@fenced\/[a-z0-9][a-z0-9._-]*$/;

/**
 * Splits a provider into its halves and checks that its package may be imported.
 *
 * @throws ComponentError if it does not have the form `"<package>:<Export>"`, or the package is neither in the
 * `@fenced/` scope nor in `allow`.
 */
export function parseProvider(provider: string, allow: readonly string[]): Provider {
  const [, specifier, exportName] = /^([^\s:][^\s]*):([\p{ID_Start}$_][\p{ID_Continue}$]*)$/u.exec(provider) ?? [];
  if (specifier === undefined || exportName === undefined) {
    throw new ComponentError(`${JSON.stringify(provider)} is not a provider`, {
      remedy: 'Write "<package>:<Export>", for example "@fenced/executor-docker:DockerCommandLineCodeExecutor".',
    });
  }
  if (!fencedPackage.test(specifier) && !allow.includes(specifier)) {
    throw new ComponentError(`The provider ${JSON.stringify(provider)} is outside the @fenced/ scope and not allowed`, {
      remedy: `If you trust that package, load with { allow: [${JSON.stringify(specifier)}] }: importing it runs its code.`,
      option: "allow",
    });
  }
  if (specifier.startsWith(".")) {
    throw new ComponentError(`The provider ${JSON.stringify(provider)} is a relative path`, {
      remedy: "Name a package or a file: URL.",
    });
  }
  return { specifier, exportName };
}
