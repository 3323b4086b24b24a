/** Runs a checker of published packages (`publint` or `attw`) on everything that a release would publish, in one process. */
import { readFileSync } from "node:fs";
import { withPackedPackages } from "./packages.mjs";

/** @typedef {(tarball: Uint8Array<ArrayBuffer>) => Promise<readonly string[]>} Checker - Resolves to what is wrong. */

/** @type {Record<string, () => Promise<Checker>>} */
const checkers = {
  async publint() {
    const { publint } = await import("publint");
    const { formatMessage } = await import("publint/utils");
    return async (tarball) => {
      const { messages, pkg } = await publint({ pack: { tarball: tarball.buffer }, strict: true });
      return messages.map((message) => formatMessage(message, pkg, { color: false }) ?? message.code);
    };
  },
  async attw() {
    const { checkPackage, createPackageFromTarballData } = await import("@arethetypeswrong/core");
    const { problemKindInfo } = await import("@arethetypeswrong/core/problems");
    return async (tarball) => {
      const result = await checkPackage(createPackageFromTarballData(tarball));
      if (result.types === false) return ["It has no types."];
      return result.problems
        .filter((problem) => !("resolutionKind" in problem && notPromised.has(problem.resolutionKind)))
        .map((problem) => `${problemKindInfo[problem.kind].description} ${JSON.stringify(problem)}`);
    };
  },
};
/** Ways of resolving modules that a package with only ES modules need not support. */
const notPromised = new Set(["node10", "node16-cjs"]);

const [name = ""] = process.argv.slice(2);
const checker = await checkers[name]?.();
if (!checker) throw new Error(`Name a checker: ${Object.keys(checkers).join(" or ")}.`);

await withPackedPackages(async (packages) => {
  for (const { name: packageName, tarball } of packages) {
    const problems = await checker(new Uint8Array(readFileSync(tarball)));
    console.log([`${problems.length === 0 ? "ok     " : "FAILED "} ${packageName}`, ...problems].join("\n  "));
    if (problems.length > 0) process.exitCode = 1;
  }
});
