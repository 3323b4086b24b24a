/** Writes the API reference, a folder of Markdown for each package, from the types and comments of the sources. */
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { Application, Comment, type TypeDocOptions } from "typedoc";
import type { PluginOptions } from "typedoc-plugin-markdown";
import { apiFolder } from "./pages.ts";
import { isThere, repositoryUrl, root, textOf } from "./repository.ts";

const packages = readdirSync(join(root, "packages")).filter((name) => isThere(`packages/${name}/src/index.ts`));

const options: TypeDocOptions & PluginOptions = {
  plugin: ["typedoc-plugin-markdown"],
  outputs: [{ name: "markdown", path: join(root, apiFolder) }],
  entryPoints: packages.map((name) => join(root, "packages", name, "src/index.ts")),
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
  tableColumnSettings: { hideSources: true, hideModifiers: true },
};

const application = await Application.bootstrapWithPlugins(options);
const project = await application.convert();
if (project === undefined || application.logger.hasErrors()) process.exit(1);
for (const module of project.children ?? []) {
  const folder = module.name.replace(/\/src$/, "").replace("packages/", "");
  const { name, description } = JSON.parse(textOf(`packages/${folder}/package.json`)) as {
    name: string;
    description: string;
  };
  module.name = name;
  module.comment = new Comment([{ kind: "text", text: `${description}.` }]);
}
await application.generateOutputs(project);
if (application.logger.hasErrors() || application.logger.hasWarnings()) process.exit(1);
console.log(`${packages.length} packages are described in ${apiFolder}.`);
