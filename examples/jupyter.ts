// Keeps variables between calls in a Jupyter kernel, and saves its plots.
// needs: jupyter
import assert from "node:assert/strict";
// #region run
import { JupyterCodeExecutor, LocalJupyterServer } from "@fenced/executor-jupyter";
// #endregion
import { enterTemporaryDirectory } from "./support/enter-temporary-directory.ts";

enterTemporaryDirectory();

// #region run
await using server = new LocalJupyterServer();
await using executor = new JupyterCodeExecutor({ server, outputDir: "plots" });
await executor.executeCodeBlocks([{ language: "python", code: "squares = [n * n for n in range(10)]" }]);
const result = await executor.executeCodeBlocks([
  { language: "python", code: "import matplotlib.pyplot as plt\nplt.plot(squares)\nplt.show()\nsum(squares)" },
]);
console.log(result.output); // "<Figure size 640x480 with 1 Axes>\n285\n"
console.log(result.displays[0]?.files); // [".../plots/display-1f0c5e0e-9a3b.png"]
// #endregion

assert.match(result.output, /^<Figure size 640x480 with 1 Axes>\n285\n$/);
assert.match(result.displays[0]?.files[0] ?? "", /plots\/display-[0-9a-f-]+\.png$/);
