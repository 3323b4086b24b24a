/**
 * Runs the packages, from their tarballs, on what `SUPPORT.md` and `docs/bundlers.md` call tested every night: in Next.js, with Yarn's
 * Plug'n'Play, in Bun and in Deno, blocks on this host, in the OS sandbox, in Docker and in WebAssembly; and reads the types of all
 * entry points with the oldest TypeScript. Runtimes and compilers come from npm's registry, in the versions below, which those pages
 * name. Arguments are parts of names: only matching checks run.
 */
import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { withoutTypes } from "../test-support/bundle-program.ts";
import { freePort } from "../test-support/free-port.ts";
import { needsOf } from "./example-needs.ts";
import { FreshProject, yarnVersion } from "./fresh-project.ts";
import { manifestOf, withPackedPackages, type Package } from "./packages.mjs";
import { commandLine, root, withoutUrls } from "./workspace.mjs";

/** What is tested; a page names each as "name major.minor". */
const versions = {
  "Next.js": "16.4.6",
  React: "19.3.1",
  Yarn: yarnVersion,
  Bun: "1.4.5",
  Deno: "2.9.6",
  TypeScript: "5.4.5",
} as const;

type Kind = "local" | "sandbox" | "docker" | "wasm";

interface Check {
  readonly name: keyof typeof versions;
  /** Where its name and version stand. */
  readonly pages: readonly string[];
  /** @returns what was run. */
  readonly run: (place: Place) => Promise<string>;
}

/** What a check gets. */
interface Place {
  readonly packages: readonly Package[];
  /** A temporary one. */
  readonly folder: string;
}

const checks: readonly Check[] = [
  { name: "Next.js", pages: ["SUPPORT.md", "docs/bundlers.md"], run: inNext },
  { name: "Yarn", pages: ["SUPPORT.md", "docs/bundlers.md"], run: withYarn },
  { name: "Bun", pages: ["SUPPORT.md"], run: inBun },
  { name: "Deno", pages: ["SUPPORT.md"], run: inDeno },
  { name: "TypeScript", pages: ["SUPPORT.md"], run: readTypes },
];

/** Installing and building takes minutes where many processes run. */
const timeoutMs = 900_000;
const executors = { "@fenced/executor-docker": "*", "@fenced/executor-local": "*", "@fenced/executor-wasm": "*" };
/** What all programs do: they run blocks. */
const program = join(root, "packages/executor-auto/test/fixtures/run-blocks.ts");

/** The executors, what to run in them, and what that needs. */
const kinds: readonly { readonly kind: Kind; readonly languages: string; readonly needs: string }[] = [
  { kind: "local", languages: "python,javascript", needs: "python3" },
  { kind: "sandbox", languages: "python,javascript", needs: "python3, bubblewrap" },
  // Its image has no JavaScript.
  { kind: "docker", languages: "python", needs: "docker" },
  { kind: "wasm", languages: "python,javascript", needs: "node" },
];

const { positionals: parts } = commandLine({ options: {}, allowPositionals: true });

await withPackedPackages(async (packages, folder) => {
  for (const { name, pages, run } of checks) {
    const shown = `${name} ${versions[name]}`;
    if (parts.length > 0 && !parts.some((part) => name.toLowerCase().includes(part.toLowerCase()))) continue;
    const startedAt = Date.now();
    try {
      checkPages(name, pages);
      const ran = await run({ packages, folder });
      console.log(`ok      ${shown} (${((Date.now() - startedAt) / 1000).toFixed(1)} s): ${ran}`);
    } catch (error) {
      process.exitCode = 1;
      console.log(`FAILED  ${shown}\n${withoutUrls(error instanceof Error ? error.message : String(error))}`);
    }
  }
});

/** Throws if a page names other versions than the tested one, or none. */
function checkPages(name: keyof typeof versions, pages: readonly string[]): void {
  const wanted = `${name} ${versions[name].replace(/\.\d+$/, "")}`;
  const wrong = pages.filter((page) => !readFileSync(join(root, page), "utf8").includes(wanted));
  if (wrong.length > 0) throw new Error(`${wrong.join(" and ")} must say that "${wanted}" is tested.`);
}

async function inNext({ packages, folder }: Place): Promise<string> {
  const project = new FreshProject(folder, "npm", packages);
  await project.install({
    ...executors,
    next: versions["Next.js"],
    react: versions.React,
    "react-dom": versions.React,
  });
  await addProgram(project);
  const route = join(project.folder, "app", "run");
  mkdirSync(route, { recursive: true });
  const handler = `
    import { run } from "../../run-blocks.mjs";
    export const runtime = "nodejs";
    export const dynamic = "force-dynamic";
    export async function POST(request) {
      const { kind, languages, workDir } = await request.json();
      return new Response(await run(kind, languages, workDir));
    }
  `;
  writeFileSync(join(route, "route.js"), handler);
  const env = { NEXT_TELEMETRY_DISABLED: "1" };
  await project.runCommand("next", ["build"], { env, timeoutMs });
  return withTemporary(folder, async (temporary) => {
    const port = await freePort();
    const words = [join(project.folder, "node_modules/next/dist/bin/next"), "start", "--port", String(port)];
    const server = spawn(process.execPath, [...words, "--hostname", "127.0.0.1"], {
      cwd: project.folder,
      env: { ...process.env, ...env, ...temporary.env },
      stdio: ["ignore", "pipe", "pipe"],
    });
    const ended = once(server, "close");
    const output = outputOf(server);
    try {
      const address = `http://127.0.0.1:${port}`;
      await answering(server, address, output);
      const ran = await eachKind(temporary, async (kind, languages, workDir) => {
        const body = JSON.stringify({ kind, languages, workDir });
        const response = await fetch(`${address}/run`, {
          method: "POST",
          body,
          signal: AbortSignal.timeout(timeoutMs),
        });
        if (!response.ok) throw new Error(`Next.js answered ${response.status}.\n${output()}`);
        return response.text();
      });
      return `next build, next start; ${ran}`;
    } finally {
      server.kill();
      await ended;
    }
  });
}

async function withYarn({ packages, folder }: Place): Promise<string> {
  const project = new FreshProject(folder, "yarn", packages);
  const unplugged = unpluggedPackages();
  const dependenciesMeta = Object.fromEntries(unplugged.map((name) => [name, { unplugged: true }]));
  await project.install(executors, { dependenciesMeta });
  return runProgram(project, folder, "node");
}

/** What the README of WebAssembly's executor tells users of Yarn to list. */
function unpluggedPackages(): string[] {
  const readme = readFileSync(join(root, "packages/executor-wasm/README.md"), "utf8");
  const [, names] = /Under Yarn's Plug'n'Play[^]*?"unplugged": true[^:]*:([^]*?)\.\n/.exec(readme) ?? [];
  const found = [...(names ?? "").matchAll(/`([^`]+)`/g)].map(([, name = ""]) => name);
  if (found.length === 0) throw new Error("The README of executor-wasm does not say which packages must be unplugged.");
  return found;
}

async function inBun({ packages, folder }: Place): Promise<string> {
  const project = new FreshProject(folder, "npm", packages);
  await project.install({ ...executors, bun: versions.Bun });
  await project.runInstallScripts("bun");
  return runProgram(project, folder, "bun");
}

async function inDeno({ packages, folder }: Place): Promise<string> {
  const project = new FreshProject(folder, "npm", packages);
  await project.install({ ...executors, deno: versions.Deno });
  await project.runInstallScripts("deno");
  return runProgram(project, folder, "deno", ["run", "--allow-all"]);
}

/** Reads the declarations of all entry points, with those of their optional peers. */
async function readTypes({ packages, folder }: Place): Promise<string> {
  const project = new FreshProject(folder, "pnpm", packages);
  const wanted: Record<string, string> = {};
  for (const { folder: place, optionalPeers } of packages) {
    const ranges = manifestOf(place).peerDependencies;
    for (const name of optionalPeers) wanted[name] = ranges?.[name] ?? "*";
  }
  for (const { name } of packages) wanted[name] = "*";
  const compilers = {
    "typescript-oldest": `npm:typescript@${versions.TypeScript}`,
    "typescript-newest": "npm:typescript",
  };
  await project.install({ ...wanted, ...compilers });
  const entries = packages.flatMap(({ name, folder: place }) =>
    Object.keys(manifestOf(place).exports)
      .filter((entry) => entry !== "./package.json")
      .map((entry) => `${name}${entry.slice(1)}`),
  );
  const text = entries.map((entry, index) => `import * as entry${index} from ${JSON.stringify(entry)};\n`).join("");
  const all = entries.map((_, index) => `entry${index}`).join(", ");
  writeFileSync(join(project.folder, "all.ts"), `${text}console.log(${all});\n`);
  for (const name of Object.keys(compilers)) {
    await project.typeCheck(["all.ts"], join(project.folder, "node_modules", name));
  }
  return `types of ${entries.length} entry points of ${packages.length} packages, and with the newest TypeScript`;
}

/** Puts the program into a project: as a module, and as a command that runs blocks in the executor that its arguments say. */
async function addProgram(project: FreshProject): Promise<void> {
  writeFileSync(join(project.folder, "run-blocks.mjs"), await withoutTypes(program));
  const main = `
    import { run } from "./run-blocks.mjs";
    console.log(await run(...process.argv.slice(2)));
  `;
  writeFileSync(join(project.folder, "main.mjs"), main);
}

/** Runs the program with a command of a project. */
async function runProgram(
  project: FreshProject,
  folder: string,
  command: string,
  words: readonly string[] = [],
): Promise<string> {
  await addProgram(project);
  return withTemporary(folder, (temporary) =>
    eachKind(temporary, (kind, languages, workDir) =>
      project.runCommand(command, [...words, "main.mjs", kind, languages, workDir], { env: temporary.env, timeoutMs }),
    ),
  );
}

/** A directory for temporary files. */
interface Temporary {
  readonly directory: string;
  readonly env: Readonly<Record<string, string>>;
}

/** Gives programs a directory for temporary files, and throws if they have left some of ours. */
async function withTemporary(folder: string, use: (temporary: Temporary) => Promise<string>): Promise<string> {
  const directory = mkdtempSync(join(folder, "tmp-"));
  const result = await use({ directory, env: { TMPDIR: directory } });
  const left = readdirSync(directory).filter((name) => name.startsWith("fenced"));
  if (left.length > 0) throw new Error(`It left temporary files: ${left.join(", ")}`);
  return result;
}

/**
 * Runs blocks in each executor that this machine has.
 *
 * @param run - returns what `run` of the program says.
 */
async function eachKind(
  { directory }: Temporary,
  run: (kind: Kind, languages: string, workDir: string) => Promise<string>,
): Promise<string> {
  const ran: string[] = [];
  for (const { kind, languages, needs } of kinds) {
    const { missing, required } = needsOf(`// needs: ${needs}`);
    if (required) throw new Error(`${kind} needs ${missing.join(", ")}`);
    if (missing.length > 0) {
      ran.push(`skipped ${kind}: needs ${missing.join(", ")}`);
      continue;
    }
    const said = (await run(kind, languages, mkdtempSync(join(directory, "work-")))).trim();
    const output = languages.split(",").map(() => "42");
    const wanted = JSON.stringify({ output, exitCode: 0, files: [], left: [] });
    if (said !== wanted) throw new Error(`${kind}: it said\n${said}\ninstead of\n${wanted}`);
    ran.push(kind);
  }
  return ran.join(", ");
}

/** Waits until a server answers. */
async function answering(server: ChildProcess, address: string, output: () => string): Promise<void> {
  for (;;) {
    if (server.exitCode !== null || server.signalCode !== null) throw new Error(`next start has ended.\n${output()}`);
    try {
      await fetch(address);
      return;
    } catch {
      await sleep(250);
    }
  }
}

/** @returns the end of what it has printed since. */
function outputOf(child: ChildProcess): () => string {
  let text = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream?.setEncoding("utf8").on("data", (chunk: string) => {
      text = (text + chunk).slice(-10_000);
    });
  }
  return () => text;
}
