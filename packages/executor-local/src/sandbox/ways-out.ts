import { readdir, readFile, realpath } from "node:fs/promises";
import path from "node:path";
import { isWithin, notShared, type SharedPath } from "./shared-paths.ts";

/** Entries of a shared directory to look at, which takes about a second, and how many directories to read at a time. */
const [mostEntries, atOnce] = [200_000, 8];
/** How many ways out to hide; each is a mount. */
const mostHidden = 1000;

/**
 * Sockets and named pipes that lead from what is shared to processes outside, by their paths in the sandbox: a read-only
 * mount keeps nobody from connecting to one or from writing to the other. A path that is itself shared is not among them.
 *
 * In what code can only read, all are found by looking at each entry: the kernel's table of sockets has the name that a
 * socket was bound by, which may be relative or have been changed, and only those of this network namespace. Code may
 * have made those that are in what it can change, and may remove them, so only sockets that are in the table are hidden there.
 *
 * @throws InvalidInputError if there are too many to hide.
 */
export async function waysOut(shared: readonly SharedPath[]): Promise<string[]> {
  const table = await readFile("/proc/net/unix", "utf8").catch(() => "");
  const bound = [...new Set(table.split("\n").flatMap((line) => /^(?:\S+ +){7}([^@].*)$/.exec(line)?.[1] ?? []))];
  const absolute = bound.filter((name) => name.startsWith("/"));
  const named = await Promise.all(absolute.map(async (each) => realpath(each).catch(() => undefined)));
  const relative = new Set(bound.flatMap((name) => (name.startsWith("/") ? [] : [path.basename(name)])));
  const found = new Set(named.flatMap((socket) => (socket === undefined ? [] : placesOf(socket, shared))));
  for (const each of shared) {
    if (each.mode === "write" && relative.size === 0) continue;
    for (const { file, isSocket } of await specialFiles(each.source, each.place)) {
      const isOut = each.mode === "read" || (isSocket && relative.has(path.basename(file)));
      if (isOut) for (const place of placesOf(file, [each], shared)) found.add(place);
    }
  }
  const [first = ""] = found;
  if (found.size > mostHidden) {
    const reason = `there are ${found.size} sockets and pipes of this machine in what is shared, such as ${first}`;
    throw notShared(path.dirname(first), reason, "Share a smaller directory.");
  }
  return [...found];
}

/** Where the sandbox shows a file of this host, unless the file is shared itself. */
function placesOf(file: string, shared: readonly SharedPath[], all: readonly SharedPath[] = shared): string[] {
  return shared.flatMap(({ source, place }) => {
    const hidden = path.join(place, path.relative(source, file));
    // Another shared path may be shown in front of it.
    const shown = all.findLast((each) => isWithin(hidden, each.place));
    return file !== source && isWithin(file, source) && shown?.place === place ? [hidden] : [];
  });
}

/** A file that is neither regular nor a directory nor a link. */
interface SpecialFile {
  readonly file: string;
  readonly isSocket: boolean;
}

/**
 * All sockets and pipes below a directory. Looks at names and types only, and follows no links.
 *
 * @param place - how the user names it.
 * @throws InvalidInputError if one of them has a name that cannot be passed on.
 */
async function specialFiles(top: string, place: string): Promise<SpecialFile[]> {
  const found: SpecialFile[] = [];
  // One character for each byte, since not every name is UTF-8.
  const left = [Buffer.from(top).toString("latin1")];
  let entries = 0;
  const read = async (directory: string): Promise<void> => {
    const options = { withFileTypes: true, encoding: "latin1" } as const;
    // What cannot be read cannot be entered by the same user's code, and a file has no entries.
    const inside = await readdir(Buffer.from(directory, "latin1"), options).catch(() => []);
    entries += inside.length;
    for (const entry of inside) {
      const file = `${directory}/${entry.name}`;
      if (entry.isDirectory()) left.push(file);
      else if (entry.isSocket() || entry.isFIFO()) found.push({ file: nameOf(file), isSocket: entry.isSocket() });
    }
  };
  while (left.length > 0) {
    if (entries >= mostEntries) {
      warnOfMany(place);
      break;
    }
    await Promise.all(left.splice(-atOnce).map(read));
  }
  return found;
}

function nameOf(latin1: string): string {
  const bytes = Buffer.from(latin1, "latin1");
  const name = bytes.toString();
  if (Buffer.from(name).equals(bytes)) return name;
  const reason = `its entry ${JSON.stringify(name)} is a socket or pipe of this machine whose name is not UTF-8`;
  throw notShared(path.dirname(name), reason, "Rename or remove it.");
}

function warnOfMany(place: string): void {
  process.emitWarning(
    `${place} has more than ${mostEntries} entries: code in the sandbox may find sockets and pipes among the rest, and talk to the programs behind them. Share a smaller directory.`,
    { code: "FENCED_SOCKETS" },
  );
}
