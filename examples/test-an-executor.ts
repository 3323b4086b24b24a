// Tests an executor with the conformance suite; here with a few cases, because all of them take minutes.
// needs: python3, bash, node
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { join } from "node:path";

const cases = ["runs blocks in order", "keeps its settings when loaded", "program dies of SIGKILL"];
const { status, stdout } = spawnSync(
  process.execPath,
  [
    "--import=tsx",
    "--test",
    "--test-reporter=tap",
    ...cases.map((name) => `--test-name-pattern=${name}`),
    "test/conformance.test.ts",
  ],
  {
    encoding: "utf8",
    cwd: join(import.meta.dirname, "conformance"),
    env: { ...process.env, NODE_OPTIONS: "--conditions=@fenced/source" },
  },
);

assert.equal(status, 0, stdout);
for (const name of cases) assert.match(stdout, new RegExp(`ok \\d+ - .*${name}`));
assert.match(stdout, /^# pass 3$/m);
