import { chmod, mkdir, mkdtemp, realpath, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { onTestFinished } from "vitest";

process.removeAllListeners("warning");

/** A directory that is removed when the test has finished. */
export async function temporaryDirectory(): Promise<string> {
  const directory = await realpath(await mkdtemp(join(tmpdir(), "fenced-skills-test-")));
  onTestFinished(() => rm(directory, { recursive: true, force: true }));
  return directory;
}

/** `SKILL.md` with a front matter. */
export function skillDocument(name: string, description = "Does things.", more = ""): string {
  return `---\nname: ${name}\ndescription: ${description}\n${more}---\n\n# How\n\nRun the script.\n`;
}

/** A directory with these files; those in `scripts` can be executed. */
export async function folderWith(files: Readonly<Record<string, string | Uint8Array>>): Promise<string> {
  const directory = await temporaryDirectory();
  await writeFiles(directory, files);
  return directory;
}

export async function writeFiles(
  directory: string,
  files: Readonly<Record<string, string | Uint8Array>>,
): Promise<void> {
  for (const [path, content] of Object.entries(files)) {
    const place = join(directory, path);
    await mkdir(dirname(place), { recursive: true });
    await writeFile(place, content);
    if (path.includes("/scripts/")) await chmod(place, 0o755);
  }
}

/** A skill with scripts in several languages. */
export const counting: Readonly<Record<string, string>> = {
  "counting/SKILL.md": skillDocument("counting", '"Counts words: in texts, or in files."', "license: MIT\n"),
  "counting/references/how.md": "Words are separated by spaces.\n",
  "counting/scripts/helper.py": "def words(text):\n    return len(text.split())\n",
  "counting/scripts/count.py": `#!/usr/bin/env python3
import os, sys
from helper import words
text = sys.stdin.read()
print(words(text), sys.argv[1:], os.path.isfile(os.path.join(os.environ["SKILL_DIR"], "references/how.md")))
with open("count.txt", "w") as file:
    file.write(str(words(text)))
`,
  "counting/scripts/shell.sh": '#!/bin/sh\nprintf "%s|" "$@"\n',
  "counting/scripts/forever.sh": "while :; do sleep 1; done\n",
  "counting/scripts/vandal.sh": 'echo changed > "$SKILL_DIR/SKILL.md" || echo "could not write"\n',
};
