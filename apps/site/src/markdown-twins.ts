import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import type { DefaultTheme } from "vitepress";
import { sidebar } from "./navigation.ts";
import { allPages, pageOf } from "./pages.ts";
import { resolveLink } from "./repository-links.ts";
import { base, textOf } from "./repository.ts";

/**
 * For agents and other readers of text: writes each page once more as the Markdown that it was made from, at its address with
 * `.md`, and `llms.txt`, which lists them (https://llmstxt.org). Links between pages lead to these files.
 *
 * @param folder - The folder of the built site.
 */
export function writeMarkdownTwins(folder: string): void {
  for (const file of allPages()) {
    const page = join(folder, pageOf(file) ?? file);
    mkdirSync(dirname(page), { recursive: true });
    writeFileSync(page, withSiteLinks(file, textOf(file)));
  }
  writeFileSync(join(folder, "llms.txt"), index());
}

function index(): string {
  const sections = sidebar().map(({ text = "", items = [] }) => `## ${text}\n\n${items.flatMap(lines).join("\n")}\n`);
  return [
    "# Fenced\n",
    "> TypeScript packages for Node 20.19 and newer that run the code that AI agents write: in processes, OS sandboxes, containers, pods,",
    "> Jupyter kernels or WebAssembly, over SSH or in Azure, behind one interface. With an agent chat, tools for the AI SDK and MCP.\n",
    ...sections,
  ].join("\n");
}

function lines({ text = "", link = "", items = [] }: DefaultTheme.SidebarItem): string[] {
  return [`- [${text}](${base}${markdownOf(link).slice(1)})`, ...items.flatMap(lines)];
}

/** The twin of a page's address. */
function markdownOf(route: string): string {
  const [path = "", fragment = ""] = route.split(/(?=#)/);
  return `${path.endsWith("/") ? `${path}index` : path}.md${fragment}`;
}

/** Outside of fences, makes links to pages lead to their twins, and other links into the repository. */
function withSiteLinks(file: string, text: string): string {
  return text
    .split(/^(`{3,}[^\n]*\n[\s\S]*?^`{3,}$)/m)
    .map((part) =>
      /^`{3}/.test(part) ? part : part.replaceAll(/\]\(([^()\s]+)\)/g, (_, href: string) => `](${twin(file, href)})`),
    )
    .join("");
}

function twin(file: string, href: string): string {
  const target = resolveLink(file, href);
  return target.startsWith("/") && !target.startsWith("/api/") ? `${base}${markdownOf(target).slice(1)}` : target;
}
