// Runs blocks in a pod of a Kubernetes cluster.
// needs: kubernetes
import assert from "node:assert/strict";
// #region kubernetes
import { KubernetesCommandLineCodeExecutor } from "@fenced/executor-kubernetes";
// #endregion
import { testKubeconfig } from "@fenced/test-support/backends";

Object.assign(process.env, { KUBECONFIG: testKubeconfig, SANDBOX_IMAGE: "fenced-test:python" });

// #region kubernetes
await using executor = new KubernetesCommandLineCodeExecutor({
  namespace: process.env.SANDBOX_NAMESPACE ?? "default",
  image: process.env.SANDBOX_IMAGE ?? "python:3-slim",
  resources: { requests: { cpu: "100m", memory: "128Mi" }, limits: { cpu: "1", memory: "512Mi" } },
  labels: { tenant: "42" },
});
const result = await executor.executeCodeBlocks([
  { language: "bash", code: "echo 1 2 3 > numbers.txt" },
  { language: "python", code: "print(sum(map(int, open('numbers.txt').read().split())))" },
]);
console.log(result.exitCode, result.output); // 0 "6\n"
// #endregion

assert.equal(result.exitCode, 0, result.output);
assert.equal(result.output, "6\n");
