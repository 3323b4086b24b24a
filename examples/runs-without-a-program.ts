// A submitted run that goes on when its program has gone, and is read by another one.
// needs: python3
import assert from "node:assert/strict";
// #region without-program
import { readFile, writeFile } from "node:fs/promises";
import { connectExecutor } from "@fenced/core";
import { LocalCommandLineCodeExecutor } from "@fenced/executor-local";
// #endregion
import { enterTemporaryDirectory } from "./support/enter-temporary-directory.ts";

enterTemporaryDirectory();
const blocks = [
  { language: "python", code: "import time\nfor i in range(3):\n    print(i, flush=True)\n    time.sleep(0.2)" },
  { language: "python", code: "print('done')" },
];
let lastSeen = 0;

// #region without-program
const executor = new LocalCommandLineCodeExecutor({ warm: {}, keepAliveMs: 600_000 });
await executor.submit(blocks, { id: "order-42" }); // The session has it now.
await writeFile("session.json", JSON.stringify(executor.handle), { mode: 0o600 });
await executor.detach(); // Or the program dies.

// In another program:
await using again = await connectExecutor(JSON.parse(await readFile("session.json", "utf8")));
const run = again.run("order-42"); // again.runs() lists all of them.
for await (const { seq, event } of run.events({ after: lastSeen })) {
  console.log(event);
  lastSeen = seq;
}
const { output } = await run.result();
// #endregion

assert.equal(output, "0\n1\n2\ndone\n");
assert.equal(lastSeen, run.lastSeq);
