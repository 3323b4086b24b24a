import { join } from "node:path";
import { slug } from "github-slugger";
import { defineConfig } from "vitepress";
import { breakCode } from "../src/break-code.ts";
import { writeMarkdownTwins } from "../src/markdown-twins.ts";
import { apiSidebars, sidebar } from "../src/navigation.ts";
import { noPages, pageOf } from "../src/pages.ts";
import { repositoryLinks } from "../src/repository-links.ts";
import { base, repositoryUrl, root, textOf } from "../src/repository.ts";

export default defineConfig({
  title: "Fenced",
  description: "Runs the code that agents write: executors with one contract, and the agent chat that uses them.",
  lang: "en",
  base,
  head: [["link", { rel: "icon", type: "image/svg+xml", href: `${base}favicon.svg` }]],
  cleanUrls: true,
  metaChunk: true,
  srcDir: "../..",
  srcExclude: noPages,
  rewrites: (file) => {
    const page = pageOf(file);
    if (page === undefined) throw new Error(`${file} is not a page. Add it to noPages in src/pages.ts.`);
    return page;
  },
  markdown: {
    anchor: { slugify: (text) => slug(text) },
    config: (markdown) => {
      markdown.use(repositoryLinks).use(breakCode);
    },
  },
  vite: {
    build: { chunkSizeWarningLimit: 4096 }, // The search index, which is loaded on the first search.
    publicDir: join(root, "apps/site/public"),
    plugins: [
      {
        // Pages are outside this package, where Vue cannot be resolved. The rendered program runs inside it, and resolves it.
        name: "vue-for-pages",
        enforce: "pre",
        // VitePress lists these as if they could be resolved from the pages. Without the list they are found automatically.
        configResolved: ({ optimizeDeps }) => {
          optimizeDeps.include = [];
        },
        resolveId: (id, _importer, { ssr }) =>
          ssr === true && /^vue(\/server-renderer)?$/.test(id) ? { id, external: true } : undefined,
      },
    ],
  },
  transformPageData: ({ filePath, frontmatter, relativePath }) => {
    if (relativePath.startsWith("api/")) Object.assign(frontmatter, { editLink: false, pageClass: "api" });
    // Without headings, wide tables get the outline's space.
    if (!/^## /m.test(textOf(filePath))) frontmatter["aside"] = false;
  },
  buildEnd: ({ outDir }) => writeMarkdownTwins(outDir),
  themeConfig: {
    logo: { src: "/favicon.svg", alt: "" },
    nav: [
      { text: "Getting started", link: "/getting-started" },
      { text: "API", link: "/api/", activeMatch: "^/api/" },
      { text: "Versions", link: `${repositoryUrl}/releases` },
      { text: "GitHub", link: repositoryUrl },
    ],
    sidebar: { "/": sidebar(), ...apiSidebars() },
    outline: [2, 3],
    search: {
      provider: "local",
      options: {
        miniSearch: {
          searchOptions: {
            // People search for how to do something; the API's pages are many and repeat the same words.
            boostDocument: (id: string) => (id.includes("/api/") ? 0.2 : 1),
          },
        },
      },
    },
    editLink: { pattern: `${repositoryUrl}/edit/main/:path`, text: "Edit this page" },
    externalLinkIcon: true,
  },
});
