import { dirname, join, relative } from "node:path/posix";
import type { MarkdownRenderer } from "vitepress";
import { routeOf } from "./pages.ts";
import { isFolder, isThere, pathOf, root, urlOf } from "./repository.ts";

/**
 * Makes links that work on GitHub work on the site: to a page if the file or folder has one, otherwise to the repository,
 * even if it does not exist there, which the link checker reports. The comment that names the example of a fence becomes a
 * link to it.
 */
export function repositoryLinks(markdown: MarkdownRenderer): void {
  markdown.core.ruler.push("repository-links", ({ tokens, env }) => {
    const { realPath, path } = env as { readonly realPath?: string; readonly path: string };
    const file = relative(root, realPath ?? path);
    for (const token of tokens) {
      if (token.type === "html_block") token.content = exampleLink(token.content) ?? token.content;
      for (const child of token.children ?? []) {
        const href = child.type === "link_open" ? child.attrGet("href") : null;
        if (href !== null) child.attrSet("href", resolveLink(file, href));
      }
    }
  });
}

/**
 * Where a link leads: an address on the site, without its base, or one in the repository.
 *
 * @param file - The file that holds the link, relative to the repository's root.
 * @param href - The link as written.
 */
export function resolveLink(file: string, href: string): string {
  if (href.startsWith("#")) return href;
  const { target, fragment } = targetOf(file, href);
  if (target === undefined) return href;
  const text = isFolder(target) ? join(target, "README.md") : target;
  const page = isThere(text) ? routeOf(text) : undefined;
  return `${page ?? urlOf(target === "." ? "" : target)}${fragment}`;
}

function targetOf(file: string, href: string): { readonly target: string | undefined; readonly fragment: string } {
  const fragment = /#.*$/.exec(href)?.[0] ?? "";
  if (/^[a-z][a-z+.-]*:/i.test(href)) {
    const target = pathOf(href);
    return { target, fragment: fragment === "#readme" ? "" : fragment };
  }
  return { target: join(dirname(file), decodeURI(href.slice(0, href.length - fragment.length))), fragment };
}

function exampleLink(html: string): string | undefined {
  const [, file] = /^<!-- (examples\/[\w./-]+)#[\w-]+ -->\s*$/.exec(html) ?? [];
  if (file === undefined) return undefined;
  return `<p class="example"><a href="${urlOf(file)}" target="_blank" rel="noreferrer">${file}</a></p>\n`;
}
