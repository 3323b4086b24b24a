// Runs blocks from a program that is in a container itself, and shares its files with them.
// needs: docker
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
// #region docker-out-of-docker
import { DockerCommandLineCodeExecutor } from "@fenced/executor-docker";
// #endregion
import { enterTemporaryDirectory } from "./support/enter-temporary-directory.ts";

const codingOnHost = process.env["CODING_ON_HOST"];
if (codingOnHost === undefined) startInContainer();
else await runBlocks(codingOnHost);

/** This is what the program does in its container. */
async function runBlocks(bindDir: string): Promise<void> {
  const image = "fenced-test:python";
  // #region docker-out-of-docker
  await using executor = new DockerCommandLineCodeExecutor({
    image,
    workDir: "/coding", // as this program sees the directory
    bindDir, // as the daemon's host sees it
  });
  const result = await executor.executeCodeBlocks([
    { language: "python", code: "open('made.txt', 'w').write('by a sibling')" },
  ]);
  // #endregion
  assert.equal(result.exitCode, 0, result.output);
  assert.equal(readFileSync("/coding/made.txt", "utf8"), "by a sibling");
}

/** Starts this file again in a container that has the daemon's socket. */
function startInContainer(): void {
  enterTemporaryDirectory();
  const coding = join(process.cwd(), "coding");
  mkdirSync(coding);
  const repository = join(import.meta.dirname, "..");
  const volumes = [
    `${repository}:${repository}:ro`,
    "/var/run/docker.sock:/var/run/docker.sock",
    `${coding}:/coding`,
  ].flatMap((volume) => ["--volume", volume]);
  const words = ["--rm", "--init", "--workdir", import.meta.dirname, "--env", `CODING_ON_HOST=${coding}`, ...volumes];
  const program = ["node", "--import", "tsx", "--conditions=@fenced/source", import.meta.filename];
  execFileSync("docker", ["run", ...words, "fenced-test:node", ...program], { stdio: "inherit" });
  assert.equal(readFileSync(join(coding, "made.txt"), "utf8"), "by a sibling");
  assert.equal(statSync(join(coding, "made.txt")).uid, statSync(coding).uid);
}
