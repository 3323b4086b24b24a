import { existsSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

/**
 * The `file:` URL that `import(specifier)` would load from `base`, or `undefined` if the package is not installed
 * there.
 *
 * @param base - an absolute path or a `file:` URL; the file need not exist.
 */
export function resolvePackage(specifier: string, base: string | URL): string | undefined {
  const require = createRequire(base);
  try {
    return pathToFileURL(require.resolve(specifier)).href;
  } catch (error) {
    if (typeof error !== "object" || error === null || !("code" in error)) throw error;
    // From another location, Node can only resolve like require(), which rejects packages that export only for import.
    if (error.code === "ERR_PACKAGE_PATH_NOT_EXPORTED") {
      return resolveForImport(specifier, require.resolve.paths(specifier) ?? []);
    }
    return undefined;
  }
}

/** The package that a specifier belongs to: `@a/b` of `@a/b/c`. */
export function packageOf(specifier: string): string {
  return specifier
    .split("/")
    .slice(0, specifier.startsWith("@") ? 2 : 1)
    .join("/");
}

function resolveForImport(specifier: string, directories: readonly string[]): string | undefined {
  const name = packageOf(specifier);
  const folder = directories.map((directory) => join(directory, name)).find(isPackage);
  if (folder === undefined) return undefined;
  const manifest: unknown = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
  const target = exportTarget(manifest, `.${specifier.slice(name.length)}`);
  return target === undefined ? undefined : pathToFileURL(join(folder, target)).href;
}

function isPackage(folder: string): boolean {
  return existsSync(join(folder, "package.json"));
}

function exportTarget(manifest: unknown, subpath: string): string | undefined {
  const exported = property(manifest, "exports");
  return conditionTarget(property(exported, subpath) ?? (subpath === "." ? exported : undefined));
}

/** The first target, in the manifest's order, whose conditions match `import` in Node. */
function conditionTarget(target: unknown): string | undefined {
  if (typeof target === "string") return target;
  if (typeof target !== "object" || target === null) return undefined;
  const conditions = Array.isArray(target) ? Object.keys(target) : ["node", "import", "default"];
  return Object.entries(target)
    .filter(([condition]) => conditions.includes(condition))
    .map(([, nested]) => conditionTarget(nested))
    .find((found) => found !== undefined);
}

function property(value: unknown, key: string): unknown {
  return typeof value === "object" && value !== null && Object.hasOwn(value, key) ? Reflect.get(value, key) : undefined;
}
