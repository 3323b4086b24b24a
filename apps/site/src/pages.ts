import { readdirSync } from "node:fs";
import { join } from "node:path";
import { isThere, root, textOf } from "./repository.ts";

/** Where the API reference is generated; not in the repository. */
export const apiFolder = "apps/site/api";

/** Patterns of Markdown files that are not pages, relative to the repository's root, where the search starts. */
export const noPages: string[] = [
  "!(CONTRIBUTING|SECURITY|SUPPORT).md",
  "{benchmarks,scripts,templates,test-support}/**",
  "examples/!(README.md)",
  "examples/*/**",
  "apps/!(demo|site)/**",
  "apps/demo/!(README.md)",
  "apps/demo/*/**",
  "apps/site/!(api)",
  "apps/site/!(api)/**",
  "packages/*/!(README.md)",
  "packages/*/*/**",
];

/** The files that are pages, and their paths on the site. */
const places: readonly (readonly [files: RegExp, page: string])[] = [
  [/^docs\/(.+\.md)$/, "$1"],
  [/^packages\/([^/]+)\/README\.md$/, "packages/$1.md"],
  [/^apps\/demo\/README\.md$/, "demo.md"],
  [/^examples\/README\.md$/, "examples.md"],
  [/^CONTRIBUTING\.md$/, "contributing.md"],
  [/^SECURITY\.md$/, "security-policy.md"],
  [/^SUPPORT\.md$/, "support.md"],
  [/^apps\/site\/api\/(?:@fenced\/)?(.+\.md)$/, "api/$1"],
];

/**
 * The page of a Markdown file on the site, as a path that ends in `.md`; undefined if it is not a page.
 *
 * @param file - Relative to the repository's root.
 */
export function pageOf(file: string): string | undefined {
  const [files, page] = places.find(([pattern]) => pattern.test(file)) ?? [];
  if (files === undefined || page === undefined) return undefined;
  return file.replace(files, page).replace(/(^|\/)README\.md$/, "$1index.md");
}

/** The address of that page below the site's own, for links. */
export function routeOf(file: string): string | undefined {
  const page = pageOf(file);
  return page === undefined ? undefined : `/${page.replace(/(^|\/)index\.md$/, "$1").replace(/\.md$/, "")}`;
}

/** The first heading, without the scope of our packages. */
export function titleOf(file: string): string {
  const [, title = file] = /^# (.+)$/m.exec(textOf(file)) ?? [];
  return title.replace("@fenced/", "");
}

/** The names of the folders directly in a folder, in order; none if it does not exist. */
export function foldersIn(folder: string): string[] {
  if (!isThere(folder)) return [];
  return readdirSync(join(root, folder), { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => name)
    .toSorted();
}

/** The pages directly in a folder, in order, without its README. */
export function pagesIn(folder: string): string[] {
  return readdirSync(join(root, folder))
    .toSorted()
    .map((name) => `${folder}/${name}`)
    .filter((file) => file.endsWith(".md") && !file.endsWith("README.md"));
}

/** The READMEs of all packages. */
export function packagePages(): string[] {
  return readdirSync(join(root, "packages"))
    .toSorted()
    .map((name) => `packages/${name}/README.md`)
    .filter(isThere);
}

/** All pages but those of the API reference, as files of the repository. */
export function allPages(): string[] {
  const others = ["apps/demo/README.md", "examples/README.md", "CONTRIBUTING.md", "SECURITY.md", "SUPPORT.md"];
  return [...pagesIn("docs"), "docs/decisions/README.md", ...pagesIn("docs/decisions"), ...packagePages(), ...others];
}
