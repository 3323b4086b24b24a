import assert from "node:assert/strict";
import {
  type CodeBlock,
  type CodeExecutor,
  type FileEvent,
  FileNotFoundError,
  InvalidInputError,
  type WatchOptions,
  WorkspacePathError,
} from "@fenced/core";
import type { CaseContext } from "../case-context.ts";
import type { ConformanceGroup } from "../conformance-case.ts";
import { fileFeature, language } from "../needs.ts";

const python = (code: string): CodeBlock => ({ language: "python", code });

/** Watches a directory of an executor; what is seen is collected until it ends. */
async function watching(kit: CaseContext, { files }: CodeExecutor, path: string, options: WatchOptions = {}) {
  const events = files.watch(path, options);
  const first = await kit.within("the start", events.next());
  assert.deepEqual(first, { done: false, value: { type: "start", path } });
  const seen: string[] = [];
  const collect = async (): Promise<readonly string[]> => {
    for await (const event of events) seen.push(told(event));
    return seen;
  };
  const ended = collect();
  ended.catch(() => {});
  const sees = (event: string): Promise<true> => kit.eventually(event, () => seen.includes(event) || undefined);
  return { seen, sees, ended };
}

function told({ type, path }: FileEvent): string {
  return `${type} ${path}`;
}

/** `files.watch`. */
export const watchedDirectories: ConformanceGroup = {
  name: "watched directories",
  cases: [
    {
      name: "are refused where they cannot be watched, do not exist, or are outside",
      async run(kit) {
        const { files } = await kit.shared();
        const first = (path: string): Promise<unknown> => files.watch(path).next();
        if (kit.capabilities.files?.includes("watch") !== true) {
          await kit.rejects(InvalidInputError, "watch", first("."), /capabilities\.files/);
          return;
        }
        await kit.rejects(FileNotFoundError, "watch", first("missing"));
        await kit.rejects(WorkspacePathError, "watch", first("../outside"));
      },
    },
    {
      name: "tell what code and files.write() do there, and nothing below, until they are told to end",
      needs: [fileFeature("watch"), language("python")],
      async run(kit) {
        const executor = await kit.shared();
        await executor.files.write("dir/sub/old.txt", "old");
        const controller = new AbortController();
        const { seen, sees, ended } = await watching(kit, executor, "dir", { signal: controller.signal });
        await executor.files.write("dir/written.txt", "text");
        await sees("create dir/written.txt");
        const code = `
import os
open("dir/sub/below.txt", "w").close()
with open("dir/made.txt", "w") as file: file.write("text")
os.chmod("dir/made.txt", 0o600)
os.rename("dir/made.txt", "dir/ä b.txt")
os.remove("dir/ä b.txt")
`;
        await kit.succeed(executor, python(code));
        await sees("remove dir/ä b.txt");
        for (const event of [
          "create dir/made.txt",
          "write dir/made.txt",
          "chmod dir/made.txt",
          "rename dir/made.txt",
        ]) {
          await sees(event);
        }
        // What the executor itself puts there while it writes is not told.
        assert.ok(!seen.some((event) => event.includes("below") || event.includes(".fenced-")), seen.join(", "));
        controller.abort();
        await kit.within("the end", ended);
      },
    },
    {
      name: "with everything below them tell of new directories, and of moved ones by their new names, but follow no link",
      needs: [fileFeature("watch"), language("python")],
      async run(kit) {
        const executor = await kit.create();
        await executor.files.write("top/a/file.txt", "text");
        await executor.files.write("other/file.txt", "text");
        const { seen, sees, ended } = await watching(kit, executor, ".", { recursive: true });
        const code = `
import os
os.makedirs("top/new/deep")
open("top/new/deep/file.txt", "w").close()
os.rename("top/a", "top/b")
os.symlink("/tmp", "top/link")
`;
        await kit.succeed(executor, python(code));
        await sees("create top/new/deep/file.txt");
        await sees("create top/b");
        await executor.files.write("top/b/later.txt", "text");
        await sees("create top/b/later.txt");
        await sees("create top/link");
        assert.ok(!seen.some((event) => /top\/(?:link|a)\//.test(event)), seen.join(", "));
        await kit.within("stop()", executor.stop());
        await kit.within("the end", ended);
      },
    },
    {
      name: "that code replaces by a link are watched no more, and others until restart()",
      needs: [fileFeature("watch"), language("python")],
      async run(kit) {
        const executor = await kit.create();
        await executor.files.write("dir/file.txt", "text");
        const { ended } = await watching(kit, executor, "dir", { recursive: true });
        const code = `import os\nos.rename("dir", "away")\nos.symlink("/tmp", "dir")\nopen("dir/fenced-seen", "w").close()\nos.remove("dir/fenced-seen")`;
        await kit.succeed(executor, python(code));
        const seen = await kit.within("the end", ended);
        assert.equal(seen.at(-1), "rename dir");
        assert.ok(!seen.some((event) => event.includes("fenced-seen")), seen.join(", "));
        const other = await watching(kit, executor, "away");
        await kit.within("restart()", executor.restart());
        assert.deepEqual(await kit.within("the end", other.ended), []);
      },
    },
  ],
};
