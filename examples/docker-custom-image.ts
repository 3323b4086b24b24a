// Builds an image with everything the code needs, and runs blocks in it.
// needs: docker
import assert from "node:assert/strict";
// #region custom-image
import { execFileSync } from "node:child_process";
import { DockerCommandLineCodeExecutor } from "@fenced/executor-docker";
// #endregion

Object.assign(process.env, { BASE_IMAGE: "fenced-test:python" });

// #region custom-image
const dockerfile = `
FROM ${process.env.BASE_IMAGE ?? "python:3-slim"}
RUN mkdir /data && printf 'apple,3\\npear,5\\n' > /data/prices.csv
ENV PRICES=/data/prices.csv
`;
execFileSync("docker", ["build", "--tag", "price-sandbox", "-"], { input: dockerfile });

await using executor = new DockerCommandLineCodeExecutor({ image: "price-sandbox", pull: "never", network: "none" });
const code = "import csv, os\nprint(sum(int(price) for _, price in csv.reader(open(os.environ['PRICES']))))";
const result = await executor.executeCodeBlocks([{ language: "python", code }]);
console.log(result.output); // "8\n"
// #endregion

try {
  assert.equal(result.exitCode, 0, result.output);
  assert.equal(result.output, "8\n");
  const refused = await executor.executeCodeBlocks([{ language: "bash", code: "echo plum,1 >> /data/prices.csv" }]);
  assert.notEqual(refused.exitCode, 0, "files in the image belong to root, and the code does not run as root");
} finally {
  await executor.stop();
  execFileSync("docker", ["image", "rm", "price-sandbox"], { stdio: "ignore" });
}
