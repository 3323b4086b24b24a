// Runs blocks from a program that itself runs in a container, and shares its files with them.
// needs: docker, FENCED_REPOSITORY
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
// #region docker-out-of-docker
import { DockerCommandLineCodeExecutor } from "@fenced/executor-docker";
// #endregion
import { enterTemporaryDirectory } from "./support/enter-temporary-directory.ts";

if (process.env.CODING_ON_HOST === undefined) startInContainer();
else await runBlocks();

/** The program's work in its container. */
async function runBlocks(): Promise<void> {
  // #region docker-out-of-docker
  await using executor = new DockerCommandLineCodeExecutor({
    image: process.env.SANDBOX_IMAGE ?? "python:3-slim",
    workDir: "/coding", // as this program sees the directory
    bindDir: process.env.CODING_ON_HOST ?? "/coding", // as the daemon's host sees it
  });
  const result = await executor.executeCodeBlocks([
    { language: "python", code: "open('made.txt', 'w').write('by a sibling')" },
  ]);
  // #endregion
  assert.equal(result.exitCode, 0, result.output);
  assert.equal(readFileSync("/coding/made.txt", "utf8"), "by a sibling");
}

/** Starts this file again, in a container with the daemon's socket. */
function startInContainer(): void {
  enterTemporaryDirectory();
  const coding = join(process.cwd(), "coding");
  mkdirSync(coding);
  const repository = process.env.FENCED_REPOSITORY ?? join(import.meta.dirname, "..");
  const volumes = [
    `${repository}:${repository}:ro`,
    "/var/run/docker.sock:/var/run/docker.sock",
    `${coding}:/coding`,
  ].flatMap((volume) => ["--volume", volume]);
  const environment = [`CODING_ON_HOST=${coding}`, "SANDBOX_IMAGE=fenced-test:python"].flatMap((each) => [
    "--env",
    each,
  ]);
  const words = ["--rm", "--init", "--workdir", import.meta.dirname, ...environment, ...volumes];
  const program = ["node", "--import", "tsx", "--conditions=@fenced/source", import.meta.filename];
  execFileSync("docker", ["run", ...words, "fenced-test:node", ...program], { stdio: "inherit" });
  assert.equal(readFileSync(join(coding, "made.txt"), "utf8"), "by a sibling");
  assert.equal(statSync(join(coding, "made.txt")).uid, statSync(coding).uid);
}
