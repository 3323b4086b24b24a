// Draws a chart with pandas and matplotlib in a container without a network.
// needs: analysisImage
import assert from "node:assert/strict";
import { copyFile, readFile } from "node:fs/promises";
import { join } from "node:path";
// #region sandbox
import { DockerCommandLineCodeExecutor } from "@fenced/executor-docker";
// #endregion
import { enterTemporaryDirectory } from "./support/enter-temporary-directory.ts";

const here = process.cwd();
enterTemporaryDirectory();
await copyFile(join(import.meta.dirname, "../apps/demo/data/penguins.json"), "penguins.json");
Object.assign(process.env, { SANDBOX_IMAGE: "fenced-test:analysis" });

// #region sandbox
await using executor = new DockerCommandLineCodeExecutor({
  image: process.env.SANDBOX_IMAGE ?? "analysis-sandbox",
  pull: "never",
  network: "none",
});
await executor.files.upload(["penguins.json"]);
const code = `
import matplotlib.pyplot as plt
import pandas as pd

penguins = pd.read_json("penguins.json")
print(penguins.groupby("Species")["Body Mass (g)"].mean().round(1).to_string())

figure, axes = plt.subplots(figsize=(8, 4.5), dpi=120, layout="constrained")
for (species, group), color in zip(penguins.groupby("Species"), ["#0072b2", "#e69f00", "#009e73"]):
    axes.scatter(group["Flipper Length (mm)"], group["Body Mass (g)"] / 1000, s=22, alpha=0.75, color=color, label=species)
axes.set(xlabel="flipper length (mm)", ylabel="body mass (kg)", title="344 penguins of Palmer Station")
axes.legend(frameon=False)
axes.spines[["top", "right"]].set_visible(False)
figure.savefig("penguins.png")
`;
const result = await executor.executeCodeBlocks([{ language: "python", code }]);
console.log(result.exitCode, result.output);
const [chart = ""] = await executor.files.download(["penguins.png"], "charts");
// #endregion

assert.equal(result.exitCode, 0, result.output);
assert.equal(result.stderr, "");
assert.match(result.output, /Adelie +3700\.7\n/);
const picture = await readFile(chart);
assert.equal(picture.subarray(1, 4).toString(), "PNG");
// An empty chart of this size has about 15 kB.
assert.ok(picture.length > 30_000, `${picture.length} bytes`);
const offline = "import socket\nsocket.create_connection(('192.0.2.1', 80), timeout=5)";
const reached = await executor.executeCodeBlocks([{ language: "python", code: offline }]);
assert.match(reached.stderr, /Network is unreachable/);
// Updates the picture in the documentation: npm run examples -- packages-in-the-sandbox, with CHART=docs/images/chart.png
if (process.env.CHART !== undefined) await copyFile(chart, join(here, "..", process.env.CHART));
