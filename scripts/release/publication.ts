import { dirname } from "node:path";
import type { Package } from "../packages.mjs";
import { runIn } from "./repository-copy.ts";

/** What npm would send. */
export interface Publication {
  readonly name: string;
  readonly version: string;
  /** Bytes of the tarball. */
  readonly size: number;
  readonly unpackedSize: number;
  readonly entryCount: number;
  readonly files: readonly { readonly path: string }[];
  /** The manifest in the tarball. */
  readonly manifest: PublishedManifest;
}

interface PublishedManifest {
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly peerDependencies?: Readonly<Record<string, string>>;
  readonly exports?: unknown;
  readonly repository?: { readonly url?: string };
  readonly publishConfig?: { readonly access?: string; readonly provenance?: boolean };
}

/** A port without a server: whatever goes wrong, nothing is published. */
const nowhere = "--registry=http://127.0.0.1:9/";

/** Lets npm report what it would publish. */
export function dryPublish({ name, tarball }: Package): Publication {
  const options = ["--dry-run", "--json", "--ignore-scripts", "--fetch-retries=0", nowhere];
  const answer = JSON.parse(runIn(dirname(tarball), "npm", ["publish", tarball, ...options])) as
    | Publication
    | Record<string, Publication>;
  // npm 11 names the package first.
  const publication = name in answer ? (answer as Record<string, Publication>)[name] : (answer as Publication);
  if (publication === undefined) throw new Error(`npm did not say what it would publish for ${name}.`);
  const text = runIn(dirname(tarball), "tar", ["-xzOf", tarball, "package/package.json"]);
  const manifest = JSON.parse(text) as PublishedManifest;
  return { ...publication, manifest };
}

/** The problems of a publication, one sentence each. */
export function checkPublication({ name, version, files, manifest }: Publication): string[] {
  const paths = files.map(({ path }) => path);
  const { dependencies, peerDependencies, publishConfig, repository } = manifest;
  const workspaceOnly = /"workspace:|"@fenced\/source"/.exec(
    JSON.stringify({ dependencies, peerDependencies, exports: manifest.exports }),
  );
  return [
    ...["LICENSE", "README.md", "dist/index.js", "dist/index.d.ts"]
      .filter((path) => !paths.includes(path))
      .map((path) => `${name}: ${path} would be missing.`),
    ...paths
      .filter((path) => /(?:^|\/)(?:test|node_modules)\/|\.tsbuildinfo$|(?:^|\/)tsconfig\b/.test(path))
      .map((path) => `${name}: ${path} would be published.`),
    ...(workspaceOnly === null ? [] : [`${name}: ${workspaceOnly[0]} has no meaning outside the workspace.`]),
    ...Object.entries(dependencies ?? {})
      .filter(([other, range]) => other.startsWith("@fenced/") && range !== `^${version}`)
      .map(([other, range]) => `${name}: depends on ${other} ${range} instead of ^${version}.`),
    ...Object.entries(peerDependencies ?? {})
      .filter(([other, range]) => other.startsWith("@fenced/") && range !== `>=${version}`)
      .map(([other, range]) => `${name}: accepts ${other} ${range} as a peer, instead of >=${version}.`),
    ...(publishConfig?.access === "public" ? [] : [`${name}: publishConfig.access is not "public".`]),
    ...(publishConfig?.provenance === true ? [] : [`${name}: publishConfig.provenance is not true.`]),
    // npm compares it with the repository in which the workflow runs, and rejects provenance from any other.
    ...(repository?.url === "git+https://github.com/fenced/fenced.git"
      ? []
      : [`${name}: repository.url is not that of the repository, and provenance needs it.`]),
  ];
}
