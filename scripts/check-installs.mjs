/** Each package, installed alone from its tarball into an empty project, can be imported by Node and type-checked there. */
import { importIn, installAlone, typeCheckIn } from "./fresh-project.mjs";
import { withPackedPackages } from "./packages.mjs";
import { withoutUrls } from "./workspace.mjs";

await withPackedPackages(async (packages, folder) => {
  for (const subject of packages) {
    try {
      const project = await installAlone(subject, packages, folder);
      const names = await importIn(subject.name, project);
      await typeCheckIn(subject.name, project);
      console.log(`ok      ${subject.name} (${names.length} exports)`);
    } catch (error) {
      process.exitCode = 1;
      console.log(`FAILED  ${subject.name}\n${withoutUrls(error instanceof Error ? error.message : String(error))}`);
    }
  }
});
