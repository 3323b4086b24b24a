/**
 * Shows what the next release would publish, without publishing anything: in a copy of the working tree it bumps the versions,
 * writes the changelogs from the changesets, builds, packs, and lets npm report what it would send. Fails if a version, a
 * changelog, the lockfile or a package is wrong.
 */
import { appendFileSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { renderTable } from "./markdown-table.mjs";
import { withPackedPackages } from "./packages.mjs";
import { checkPublication, dryPublish, type Publication } from "./release/publication.ts";
import { checkVersions, plannedReleases, type Release } from "./release/release-plan.ts";
import { copyRepository, runIn } from "./release/repository-copy.ts";

const folder = mkdtempSync(join(tmpdir(), "fenced-release-"));
try {
  copyRepository(folder);
  runIn(folder, "pnpm", ["install", "--frozen-lockfile", "--prefer-offline"]);
  const releases = plannedReleases(folder);
  runIn(folder, "pnpm", ["run", "version-packages"]);
  const problems = checkVersions(folder, releases);
  // Fails if the lockfile does not match the new manifests.
  runIn(folder, "pnpm", ["install", "--frozen-lockfile", "--offline"]);
  runIn(folder, process.execPath, ["scripts/turbo.mjs", "build"]);
  const publications = await withPackedPackages(async (packages) => packages.map(dryPublish), folder);
  problems.push(...publications.flatMap(checkPublication));

  const report = describe(publications, releases);
  console.log(report);
  // GitHub shows this file on the page of the run.
  if (process.env.GITHUB_STEP_SUMMARY !== undefined) appendFileSync(process.env.GITHUB_STEP_SUMMARY, `${report}\n`);
  for (const problem of problems) console.log(`FAILED  ${problem}`);
  if (problems.length > 0) process.exitCode = 1;
} catch (error) {
  process.exitCode = 1;
  console.log(`FAILED  ${error instanceof Error ? error.message : String(error)}`);
} finally {
  rmSync(folder, { recursive: true, force: true });
}

function describe(publications: readonly Publication[], releases: readonly Release[]): string {
  const intention =
    releases.length === 0
      ? "There are no changesets: nothing would be released. This is what would be packed:"
      : "The next release would publish:";
  const rows = publications.map(({ name, version, entryCount, size, unpackedSize }) => {
    const { type = "none", oldVersion = version } = releases.find((release) => release.name === name) ?? {};
    return [name, type, oldVersion, version, String(entryCount), kibibytes(size), kibibytes(unpackedSize)];
  });
  const table = renderTable([["package", "bump", "from", "to", "files", "packed", "unpacked"], ...rows]);
  const summaries = new Set(releases.flatMap(({ changesets }) => changesets.map(({ summary }) => `- ${summary}`)));
  const changes = summaries.size === 0 ? [] : ["In the changelogs:", [...summaries].join("\n")];
  return [intention, table, ...changes].join("\n\n");
}

function kibibytes(bytes: number): string {
  return `${Math.round(bytes / 1024)} KiB`;
}
