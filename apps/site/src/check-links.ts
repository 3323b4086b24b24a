/**
 * Checks the built site, or the one in the given folder: every link to a page, to a heading and into the repository must
 * work, and no page may load anything from elsewhere. Links to the API reference are checked if it is part of the site.
 */
import { existsSync, readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { Parser } from "htmlparser2";
import { base, isThere, pathOf, root } from "./repository.ts";

interface Page {
  readonly ids: ReadonlySet<string>;
  /** Targets of `<a>`. */
  readonly links: readonly string[];
  /** What the browser fetches to show the page. */
  readonly resources: readonly string[];
}

const site = process.argv[2] ?? join(root, "apps/site/.vitepress/dist");
const files = readdirSync(site, { recursive: true, encoding: "utf8" }).filter((file) => file.endsWith(".html"));
const pages = new Map(files.map((file) => [file, readPage(join(site, file))]));
const hasApi = pages.has("api/index.html");
let count = 0;
/** The problems, and the pages that have them. */
const problems = new Map<string, string[]>();

for (const [file, { links, resources }] of pages) {
  report(file, links, brokenLink);
  report(file, resources, brokenResource);
}
// The pages' texts for agents, which only this file lists.
const index = join(site, "llms.txt");
if (existsSync(index)) {
  const targets = [...readFileSync(index, "utf8").matchAll(/\]\(([^)]+)\)/g)].map(([, target = ""]) => target);
  report("llms.txt", targets, brokenResource);
}
for (const [problem, [first = "", ...others]] of problems) {
  console.error(`${first}: ${problem}${others.length === 0 ? "" : ` (and on ${others.length} more pages)`}`);
}
if (problems.size > 0) process.exit(1);
console.log(`${count} links on ${pages.size} pages work.`);

function report(file: string, targets: readonly string[], check: (target: string, file: string) => string | undefined) {
  for (const target of new Set(targets)) {
    count++;
    const problem = check(target, file);
    if (problem === undefined) continue;
    const key = `${target}: ${problem}`;
    problems.set(key, [...(problems.get(key) ?? []), file]);
  }
}

function brokenLink(target: string, file: string): string | undefined {
  const inRepository = pathOf(target);
  if (inRepository !== undefined) return isThere(inRepository) ? undefined : "the repository has no such file";
  if (/^(https?|mailto):/.test(target)) return undefined;
  const { pathname, hash } = new URL(target, `http://site${base}${file}`);
  const path = localPath(pathname);
  if (path === undefined) return "it leaves the site";
  if (!hasApi && path.startsWith("api/")) return undefined;
  const page = pages.get(path);
  if (page === undefined) return existsSync(join(site, path)) ? undefined : "there is no such page";
  return hash === "" || page.ids.has(decodeURIComponent(hash.slice(1))) ? undefined : "there is no such heading";
}

function brokenResource(target: string, file: string): string | undefined {
  if (target.startsWith("data:")) return undefined;
  const { host, pathname } = new URL(target, `http://site${base}${file}`);
  const path = localPath(pathname);
  if (host !== "site" || path === undefined) return "it is loaded from elsewhere";
  return existsSync(join(site, path)) ? undefined : "there is no such file";
}

/** The file that a static web server would send; undefined if the address is not below the site's. */
function localPath(pathname: string): string | undefined {
  if (!pathname.startsWith(base)) return undefined;
  const path = decodeURIComponent(pathname.slice(base.length));
  if (path === "" || path.endsWith("/")) return `${path}index.html`;
  return pages.has(`${path}.html`) ? `${path}.html` : path;
}

function readPage(file: string): Page {
  const ids = new Set<string>();
  const links: string[] = [];
  const resources: string[] = [];
  const parser = new Parser({
    onopentag: (name, { id, href, src }) => {
      if (id !== undefined) ids.add(id);
      if (href !== undefined) (name === "a" ? links : resources).push(href);
      if (src !== undefined) resources.push(src);
    },
  });
  parser.end(readFileSync(file, "utf8"));
  return { ids, links, resources };
}
