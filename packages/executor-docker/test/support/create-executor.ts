import { DockerCommandLineCodeExecutor, type DockerExecutorOptions } from "../../src/index.ts";
import { docker } from "./docker-cli.ts";
import { pythonImage } from "./images.ts";

/** An executor on the image with Python, for `await using`. */
export function createExecutor(options: DockerExecutorOptions = {}): DockerCommandLineCodeExecutor {
  return new DockerCommandLineCodeExecutor({ image: pythonImage, ...options });
}

/** The result of one block. */
export async function run(
  executor: Pick<DockerCommandLineCodeExecutor, "executeCodeBlocks">,
  language: string,
  code: string,
) {
  return executor.executeCodeBlocks([{ language, code }]);
}

/** The trimmed output of a block that must succeed. */
export async function printed(
  executor: DockerCommandLineCodeExecutor,
  language: string,
  code: string,
): Promise<string> {
  const { exitCode, output } = await run(executor, language, code);
  if (exitCode !== 0) throw new Error(`exit code ${exitCode}: ${output}`);
  return output.trim();
}

/** What `docker inspect` says about an executor's container, for a Go template. */
export async function inspect(executor: DockerCommandLineCodeExecutor, template: string): Promise<unknown> {
  return JSON.parse(await docker("inspect", "--format", `{{json ${template}}}`, executor.containerName));
}
