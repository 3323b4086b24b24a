import { basename } from "node:path";
import type { DefaultTheme } from "vitepress";
import { apiFolder, foldersIn, packagePages, pagesIn, routeOf, titleOf } from "./pages.ts";
import { isThere } from "./repository.ts";

type Item = string | readonly [file: string, text: string];

interface Section {
  readonly text: string;
  readonly items: readonly Item[];
}

/** The order of the pages. Pages of `docs` and READMEs of packages that are not named here come last. */
const sections: readonly Section[] = [
  {
    text: "Start",
    items: [
      "docs/getting-started.md",
      ["docs/ask-your-csv.md", "Tutorial: ask your CSV"],
      "docs/choosing-an-executor.md",
      ["docs/keeping-state.md", "Keep state, start faster"],
      ["apps/demo/README.md", "The demo"],
      "examples/README.md",
      "docs/glossary.md",
    ],
  },
  {
    text: "Run code",
    items: [
      ["docs/streaming.md", "Streaming and limits"],
      ["docs/runs.md", "Runs that go on"],
      ["docs/processes.md", "Servers and tools"],
      "docs/files.md",
      "docs/checkpoints.md",
      "docs/record.md",
      ["docs/keep-alive.md", "Sessions that go on"],
      "docs/functions.md",
      "docs/packages-in-the-sandbox.md",
      ["docs/bundlers.md", "Bundlers, executables"],
      "docs/network.md",
      "docs/approval.md",
      "docs/security.md",
      "docs/troubleshooting.md",
    ],
  },
  {
    text: "Executors",
    items: [
      ["packages/executor-local/README.md", "Local"],
      ["packages/executor-docker/README.md", "Docker and Podman"],
      ["packages/executor-jupyter/README.md", "Jupyter"],
      ["docs/jupyter-on-a-cluster.md", "Jupyter on a cluster"],
      ["packages/executor-aca/README.md", "Azure sessions"],
      ["packages/aca-emulator/README.md", "Azure emulator"],
      ["packages/executor-kubernetes/README.md", "Kubernetes"],
      ["docs/kubernetes.md", "A hardened namespace"],
      ["docs/kubernetes-scale.md", "Scale on Kubernetes"],
      ["packages/executor-ssh/README.md", "SSH"],
      ["packages/executor-wasm/README.md", "WebAssembly"],
      ["packages/executor-auto/README.md", "The strongest fence"],
    ],
  },
  {
    text: "Agents and models",
    items: [
      ["packages/agentchat/README.md", "Agents and teams"],
      ["packages/model-ai-sdk/README.md", "Models: AI SDK"],
      ["packages/model-replay/README.md", "Models: record and replay"],
      ["packages/ai-sdk/README.md", "Tools for the AI SDK"],
      ["packages/skills/README.md", "Skills"],
      ["packages/adapters/README.md", "Other frameworks"],
      ["packages/mcp/README.md", "MCP server"],
      ["packages/e2b/README.md", "Server for E2B's clients"],
      ["docs/migration-from-autogen.md", "Coming from AutoGen"],
      ["docs/from-e2b.md", "From E2B"],
      ["docs/autogen-cases.md", "AutoGen's cases"],
      ["docs/testing-agents.md", "Test without a model"],
    ],
  },
  {
    text: "In production",
    items: [
      "docs/production.md",
      "docs/many-processes.md",
      ["packages/pool/README.md", "Sessions and pools"],
      ["packages/checkpoints/README.md", "Stores of checkpoints"],
      ["docs/capacity.md", "Capacity of a machine"],
      "docs/compositions.md",
      "docs/telemetry.md",
      "docs/performance.md",
      "docs/packages.md",
    ],
  },
  {
    text: "Extend",
    items: [
      ["packages/core/README.md", "Core: the contracts"],
      ["docs/add-an-executor.md", "Write an executor"],
      ["packages/executor-kit/README.md", "Executor kit"],
      ["packages/docker-daemon/README.md", "Docker daemon"],
      ["packages/egress/README.md", "Egress proxy"],
      ["packages/executor-testkit/README.md", "Conformance suite"],
    ],
  },
  {
    text: "Project",
    items: [
      ["SUPPORT.md", "What is supported"],
      ["SECURITY.md", "Report a vulnerability"],
      "docs/architecture.md",
      ["docs/decisions/README.md", "Decisions"],
      ["CONTRIBUTING.md", "Contributing"],
    ],
  },
];

/** The sidebar of all pages except the API reference. */
export function sidebar(): DefaultTheme.SidebarItem[] {
  const named = new Set(sections.flatMap(({ items }) => items.map(fileOf)));
  const others = [...pagesIn("docs"), ...packagePages()].filter((file) => !named.has(file) && file !== "docs/index.md");
  return [...sections, { text: "More", items: others }]
    .map(({ text, items }) => ({ text, items: items.filter((item) => isThere(fileOf(item))).map(toEntry) }))
    .filter(({ items }) => items.length > 0);
}

/** A sidebar for the API reference of each package, by the prefix of its pages' addresses. */
export function apiSidebars(): Record<string, DefaultTheme.SidebarItem[]> {
  const packages = foldersIn(`${apiFolder}/@fenced`);
  const entries = (names: readonly string[]): DefaultTheme.SidebarItem[] =>
    names.map((name) => ({ text: `@fenced/${name}`, link: `/api/${name}/` }));
  const all = [
    { text: "API reference", link: "/api/", items: entries(packages.filter((name) => !forAuthors.has(name))) },
    { text: "For authors of executors", items: entries(packages.filter((name) => forAuthors.has(name))) },
  ];
  const sidebars = packages.map((name) => {
    const subpaths = foldersIn(`${apiFolder}/@fenced/${name}`).filter((folder) => !(folder in kindTitles));
    const groups = subpaths.map((subpath) => ({
      text: `@fenced/${name}/${subpath}`,
      link: `/api/${name}/${subpath}/`,
      collapsed: true,
      items: kindsIn(`${name}/${subpath}`),
    }));
    const entry = { text: `@fenced/${name}`, link: `/api/${name}/` };
    const top = { items: [{ text: "All packages", link: "/api/" }, entry] };
    return [`/api/${name}/`, [top, ...kindsIn(name), ...groups]] as const;
  });
  return { "/api/": all, ...Object.fromEntries(sidebars) };
}

/** What a package or one of its subpaths exports, by kind. */
function kindsIn(entry: string): DefaultTheme.SidebarItem[] {
  const folder = `${apiFolder}/@fenced/${entry}`;
  return foldersIn(folder)
    .filter((kind) => kind in kindTitles)
    .map((kind) => ({
      text: kindTitles[kind] ?? kind,
      items: pagesIn(`${folder}/${kind}`).map((file) => ({
        text: breakable(basename(file, ".md")),
        link: routeOf(file) ?? "",
      })),
    }));
}

/** A long name may break between its words. The sidebar shows texts as HTML. */
function breakable(name: string): string {
  return name.replaceAll(/[a-z\d](?=[A-Z])/g, "$&<wbr>");
}

/** The packages that only authors of executors import. */
const forAuthors: ReadonlySet<string> = new Set(["docker-daemon", "executor-kit", "executor-testkit"]);

const kindTitles: Readonly<Record<string, string>> = {
  classes: "Classes",
  functions: "Functions",
  interfaces: "Interfaces",
  "type-aliases": "Types",
  variables: "Variables",
};

function fileOf(item: Item): string {
  return typeof item === "string" ? item : item[0];
}

function toEntry(item: Item): DefaultTheme.SidebarItem {
  const file = fileOf(item);
  const text = typeof item === "string" ? titleOf(file) : item[1];
  const link = routeOf(file);
  if (link === undefined) throw new Error(`${file} is not a page. Remove it from src/navigation.ts.`);
  if (file !== "docs/decisions/README.md") return { text, link };
  return { text, link, collapsed: true, items: pagesIn("docs/decisions").map(toEntry) };
}
