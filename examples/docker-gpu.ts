// Gives a container this machine's GPUs.
// needs: docker, gpu
import assert from "node:assert/strict";
// #region gpu
import { DockerCommandLineCodeExecutor } from "@fenced/executor-docker";
// #endregion

Object.assign(process.env, { SANDBOX_IMAGE: "fenced-test:python" });

// #region gpu
await using executor = new DockerCommandLineCodeExecutor({
  image: process.env.SANDBOX_IMAGE ?? "pytorch/pytorch",
  deviceRequests: [{ driver: "nvidia", count: -1, capabilities: [["gpu", "utility", "compute"]] }], // -1: all GPUs
});
const result = await executor.executeCodeBlocks([{ language: "bash", code: "nvidia-smi --list-gpus" }]);
console.log(result.output); // "GPU 0: NVIDIA L4 (UUID: …)\n"
// #endregion

assert.equal(result.exitCode, 0, result.output);
assert.match(result.output, /^GPU 0: /);
