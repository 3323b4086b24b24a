/**
 * Prints the versions of everything on this machine that a test's outcome may depend on, for the keys of turbo's cache, and keeps
 * the backends that it found in the file in `FENCED_BACKENDS`, where tests look.
 */
import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { readdir } from "node:fs/promises";
import { release } from "node:os";
import path from "node:path";
import { promisify } from "node:util";
import { detectBackends, jupyterPythons } from "./backends.ts";

const backends = await detectBackends(process.env.FENCED_BACKENDS);
const versions = {
  system: release(),
  backends: Object.entries(backends).map(([name, found]) => [name, found.available ? found.version : "missing"]),
  // A version tells little about what a distribution has patched, and nothing about the libraries below.
  packages: await hashOf("dpkg-query", "--show"),
  images: await Promise.all(
    (["docker", "podman"] as const).map(async (engine) => (backends[engine].available ? imagesOf(engine) : "")),
  ),
  jupyter2: backends.jupyter2.available ? await installedFor(jupyterPythons.jupyter2) : [],
};
process.stdout.write(JSON.stringify(versions));

async function hashOf(program: string, ...args: readonly string[]): Promise<string> {
  try {
    const { stdout } = await promisify(execFile)(program, [...args], { maxBuffer: 64 * 1_048_576 });
    return createHash("sha256").update(stdout.split("\n").toSorted().join("\n")).digest("hex").slice(0, 16);
  } catch {
    return "unknown";
  }
}

function imagesOf(engine: string): Promise<string> {
  return hashOf(engine, "images", "--no-trunc", "--format", "{{.ID}}", "--filter", "reference=fenced-test:*");
}

/** The packages of a virtual environment: pip names their folders with their versions. */
async function installedFor(python: string): Promise<string[]> {
  const library = path.join(path.dirname(python), "../lib");
  const folders = await Promise.all(
    (await readdir(library)).map((version) => readdir(path.join(library, version, "site-packages"))),
  );
  return folders.flat().filter((name) => name.endsWith(".dist-info"));
}
