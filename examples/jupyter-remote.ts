// Uses a running Jupyter server at an address with a path, with its token.
// needs: jupyter
import assert from "node:assert/strict";
// #region remote
import { JupyterCodeExecutor } from "@fenced/executor-jupyter";
// #endregion
import { enterTemporaryDirectory } from "./support/enter-temporary-directory.ts";
import { startJupyter } from "./support/start-jupyter.ts";

enterTemporaryDirectory();
await using jupyter = await startJupyter("/user/ada/");
Object.assign(process.env, { JUPYTER_URL: jupyter.baseUrl, JUPYTER_TOKEN: jupyter.token });

// #region remote
const baseUrl = process.env.JUPYTER_URL ?? "https://hub.example.org/user/ada/";
const token = process.env.JUPYTER_TOKEN ?? "";

const executor = new JupyterCodeExecutor({ server: { baseUrl, token }, outputDir: "outputs" });
const python = (code: string) => executor.executeCodeBlocks([{ language: "python", code }]);
await python("import json\nnumbers = list(range(10))");
const result = await python("print(sum(numbers))");
console.log(result.output); // "45\n"
await executor.files.write("note.txt", "written to the server's disk");
await executor.stop(); // ends the kernel; the server keeps running
// #endregion

assert.equal(result.output, "45\n");
assert.equal(executor.capabilities.isolation, "remote");
assert.deepEqual(await jupyter.kernels(), [], "the kernel is gone, and the server still answers");

await using stranger = new JupyterCodeExecutor({ server: { baseUrl, token: "not the token" } });
await assert.rejects(stranger.start(), { code: "backend_unavailable" });
