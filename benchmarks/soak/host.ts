/**
 * The program that `scripts/soak-kills.ts` kills: starts an executor, runs a block that leaves a process behind, stops, and
 * announces each phase. Arguments: the executor, its settings as JSON, a globally unique name, and the temporary directory to
 * use.
 */
import { once } from "node:events";
import { soakExecutors } from "./executors.ts";

const [executorName = "", settings = "{}", name = "", temporary = ""] = process.argv.slice(2);
const kind = soakExecutors[executorName];
// Set late, because tsx keeps its own files there.
process.env["TMPDIR"] = temporary;
if (!kind) throw new Error(`There is no executor ${executorName}.`);

// The sleeping program's argument identifies it, wherever it runs.
const block = `
import os, subprocess, time
subprocess.Popen(["sleep", "3600.${name.replaceAll(/\D/g, "")}"], start_new_session=True)
for number in range(20):
    os.makedirs(f"directory-{number}/deep", exist_ok=True)
    with open(f"directory-{number}/deep/file", "w") as file:
        file.write("x" * 10000)
time.sleep(0.5)
`;

const executor = await kind.create(JSON.parse(settings), { timeoutMs: 60_000 }, name);
console.log("ready");
await once(process.stdin, "data");
console.log("start");
await executor.start();
console.log("run");
await executor.executeCodeBlocks([{ language: "python", code: block }]);
console.log("stop");
await executor.stop();
console.log("end");
process.stdin.destroy();
