/** Writes the API reference, a folder of Markdown for each package, from the types and comments of the sources. */
import { readdirSync } from "node:fs";
import { join } from "node:path";
import {
  Application,
  Comment,
  CommentTag,
  Converter,
  type DeclarationReflection,
  type ProjectReflection,
  ReflectionKind,
  type TypeDocOptions,
} from "typedoc";
import type { PluginOptions } from "typedoc-plugin-markdown";
import { apiFolder } from "./pages.ts";
import { isThere, repositoryUrl, root, textOf } from "./repository.ts";

/** What can be imported: each package, and each of its subpaths, such as `core/web`, with its source. */
const entries = new Map(
  readdirSync(join(root, "packages"))
    .filter((name) => isThere(`packages/${name}/src/index.ts`))
    .flatMap((name) =>
      exportsOf(name).map(({ subpath, source }) => [join(name, subpath), join("packages", name, source)]),
    ),
);

/** The heading above members that only subclasses call or override. */
const hooks = "For subclasses";

const options: TypeDocOptions & PluginOptions = {
  plugin: ["typedoc-plugin-markdown"],
  outputs: [{ name: "markdown", path: join(root, apiFolder) }],
  entryPoints: [...entries.values()].map((source) => join(root, source)),
  tsconfig: join(root, "apps/site/tsconfig.typedoc.json"),
  basePath: root,
  disableGit: true,
  sourceLinkTemplate: `${repositoryUrl}/blob/main/packages/{path}#L{line}`,
  readme: "none",
  name: "API reference",
  excludeExternals: true,
  excludePrivate: true,
  treatWarningsAsErrors: true,
  logLevel: "Warn",
  entryFileName: "index",
  hidePageHeader: true,
  hideBreadcrumbs: true,
  useCodeBlocks: true,
  expandObjects: true,
  parametersFormat: "table",
  interfacePropertiesFormat: "table",
  classPropertiesFormat: "table",
  typeDeclarationFormat: "table",
  enumMembersFormat: "table",
  indexFormat: "table",
  tableColumnSettings: { hideSources: true, hideModifiers: true, hideInherited: true, hideOverrides: true },
  groupOrder: ["Constructors", "Properties", "Accessors", "Methods", "*", hooks],
};

const application = await Application.bootstrapWithPlugins(options);
application.converter.on(Converter.EVENT_RESOLVE_BEGIN, ({ project: converted }) => separateHooks(converted));
const project = await application.convert();
if (project === undefined || application.logger.hasErrors()) process.exit(1);
for (const module of project.children ?? []) {
  // TypeDoc names a module after the folder of its index.ts.
  const [folder = "", subpath = ""] = module.name.replace("packages/", "").split(/\/src\/?/);
  const { name, description } = manifestOf(folder);
  module.name = join(name, subpath);
  const text = subpath === "" ? `${description}.` : `Import it from \`${module.name}\`.`;
  module.comment = new Comment([{ kind: "text", text }]);
}
await application.generateOutputs(project);
if (application.logger.hasErrors() || application.logger.hasWarnings()) process.exit(1);
console.log(`${entries.size} packages and subpaths are documented in ${apiFolder}.`);

/**
 * Keeps what users call apart from hooks for authors: the protected members of a base class get their own group at the
 * end of its page, and the pages of classes that inherit them leave them out.
 */
function separateHooks(converted: ProjectReflection): void {
  const classes = converted.getReflectionsByKind(ReflectionKind.Class).filter((each) => each.isDeclaration());
  for (const each of classes) {
    for (const member of (each.children ?? []).filter(({ flags }) => flags.isProtected)) {
      if (each.flags.isAbstract && !member.inheritedFrom) groupAsHook(member);
      else converted.removeReflection(member);
    }
  }
}

function groupAsHook(member: DeclarationReflection): void {
  const [documented = member] = member.getNonIndexSignatures();
  documented.comment ??= new Comment();
  documented.comment.blockTags.push(new CommentTag("@group", [{ kind: "text", text: hooks }]));
}

function manifestOf(folder: string) {
  return JSON.parse(textOf(`packages/${folder}/package.json`)) as {
    readonly name: string;
    readonly description: string;
    readonly exports: Readonly<Record<string, string | { readonly "@fenced/source": string }>>;
  };
}

function exportsOf(folder: string): { subpath: string; source: string }[] {
  return Object.entries(manifestOf(folder).exports).flatMap(([subpath, target]) =>
    typeof target === "string" ? [] : [{ subpath, source: target["@fenced/source"] }],
  );
}
