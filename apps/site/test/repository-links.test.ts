import { join } from "node:path";
import { createMarkdownRenderer } from "vitepress";
import { describe, expect, it } from "vitest";
import { repositoryLinks } from "../src/repository-links.ts";
import { root } from "../src/repository.ts";

const markdown = await createMarkdownRenderer(root, { config: (renderer) => void renderer.use(repositoryLinks) }, "/");

/** Where a link in a file leads on the site. */
function linkIn(file: string, href: string): string | undefined {
  const html = markdown.render(`[x](${href})`, { path: join(root, file), relativePath: file, cleanUrls: true });
  return /href="([^"]+)"/.exec(html)?.[1];
}

describe("a link in a file of the repository", () => {
  it.each([
    ["docs/files.md", "security.md#files", "/security#files"],
    ["docs/files.md", "../packages/executor-docker/README.md#limits", "/packages/executor-docker#limits"],
    ["docs/files.md", "../packages/executor-docker", "/packages/executor-docker"],
    ["docs/decisions/0001-pull-not-push.md", "README.md", "/decisions/"],
    ["packages/core/README.md", "../../docs/functions.md", "/functions"],
    [
      "packages/core/README.md",
      "https://github.com/fenced/fenced/tree/main/packages/aca-emulator#readme",
      "/packages/aca-emulator",
    ],
  ])("of %s to %s leads to the page %s", (file, href, page) => {
    expect(linkIn(file, href)).toBe(page);
  });

  it.each([
    ["docs/files.md", "../examples/files.ts", "https://github.com/fenced/fenced/blob/main/examples/files.ts"],
    ["docs/files.md", "../scripts", "https://github.com/fenced/fenced/tree/main/scripts"],
    ["packages/core/README.md", "../../README.md", "https://github.com/fenced/fenced/blob/main/README.md"],
    ["docs/files.md", "https://example.org/a#b", "https://example.org/a#b"],
    ["docs/files.md", "#files", "#files"],
  ])("of %s to %s leads to %s", (file, href, address) => {
    expect(linkIn(file, href)).toBe(address);
  });
});

it("the comment above a fence becomes a link to the example", () => {
  const text = "<!-- examples/files.ts#files -->\n\n```ts\n```\n";
  const html = markdown.render(text, { path: join(root, "docs/x.md"), relativePath: "x.md", cleanUrls: true });
  expect(html).toContain('href="https://github.com/fenced/fenced/blob/main/examples/files.ts"');
});
