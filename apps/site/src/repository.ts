import { existsSync, readFileSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

/** The repository's root, absolute. The config is bundled before it runs, so only the address of this module counts. */
export const root = join(dirname(fileURLToPath(import.meta.url)), "../../..");

/** The path of the site on its host. */
export const base = "/fenced/";

/** Where people view the repository. */
export const repositoryUrl = "https://github.com/fenced/fenced";

/**
 * The address of a file or folder of the repository.
 *
 * @param path - Relative to the root; an empty one is the root itself.
 */
export function urlOf(path: string): string {
  return path === "" ? repositoryUrl : `${repositoryUrl}/${isFolder(path) ? "tree" : "blob"}/main/${path}`;
}

/**
 * The path in the repository to which an address of {@link urlOf} leads, or undefined for other addresses.
 */
export function pathOf(url: string): string | undefined {
  if (!url.startsWith(`${repositoryUrl}/`)) return undefined;
  const [, path] = /^\/(?:blob|tree|edit)\/main\/([^#?]+)/.exec(url.slice(repositoryUrl.length)) ?? [];
  return path === undefined ? undefined : decodeURI(path).replace(/\/$/, "");
}

/** Whether the repository has this file or folder. */
export function isThere(path: string): boolean {
  return !path.startsWith("..") && existsSync(join(root, path));
}

/** Whether it is a folder. */
export function isFolder(path: string): boolean {
  return isThere(path) && statSync(join(root, path)).isDirectory();
}

/** The text of a file of the repository. */
export function textOf(path: string): string {
  return readFileSync(join(root, path), "utf8");
}
