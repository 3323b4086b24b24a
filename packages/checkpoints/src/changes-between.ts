import type { CheckpointEntry, FileChanges, RestoreOption } from "@fenced/core";

/**
 * Compares the files of two checkpoints, without reading their content: what did the code do in between? Directories
 * count as changed only if their permissions differ, and times do not count.
 *
 * @throws CheckpointError if one of them is missing or damaged.
 *
 * @example
 * const { created, changed, deleted } = await changesBetween({ store, id: before }, { store, id: after });
 */
export async function changesBetween(before: RestoreOption, after: RestoreOption): Promise<FileChanges> {
  const [first, second] = await Promise.all([entriesOf(before), entriesOf(after)]);
  const [created, changed, deleted]: [string[], string[], string[]] = [[], [], []];
  let [one, other] = [await first.next(), await second.next()];
  while (one.done !== true || other.done !== true) {
    const order = compare(one, other);
    if (order < 0 && one.done !== true) {
      deleted.push(one.value.path);
      one = await first.next();
    } else if (order > 0 && other.done !== true) {
      created.push(other.value.path);
      other = await second.next();
    } else if (one.done !== true && other.done !== true) {
      if (!isSame(one.value, other.value)) changed.push(other.value.path);
      [one, other] = [await first.next(), await second.next()];
    }
  }
  return { created, changed, deleted };
}

type Step = IteratorResult<CheckpointEntry, unknown>;

async function entriesOf({ store, id }: RestoreOption): Promise<AsyncIterator<CheckpointEntry, unknown>> {
  return (await store.open(id)).entries()[Symbol.asyncIterator]();
}

/** Both are sorted by path. */
function compare(one: Step, other: Step): number {
  if (one.done === true) return 1;
  if (other.done === true || one.value.path < other.value.path) return -1;
  return one.value.path === other.value.path ? 0 : 1;
}

function isSame(one: CheckpointEntry, other: CheckpointEntry): boolean {
  if (one.mode !== other.mode && one.type !== "link") return false;
  if (one.type === "file" && other.type === "file") {
    return one.size === other.size && one.parts.every(({ hash }, index) => hash === other.parts[index]?.hash);
  }
  if (one.type === "link" && other.type === "link") return one.target === other.target;
  return one.type === "directory" && other.type === "directory";
}
