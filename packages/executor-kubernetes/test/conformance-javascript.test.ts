import { realpathSync } from "node:fs";
import { testCodeExecutor } from "@fenced/executor-testkit";
import { backend, needs } from "@fenced/test-support";
import { afterAll, describe, it } from "vitest";
import { createExecutor } from "./support/cluster.ts";
import { kubernetesSubject } from "./support/kubernetes-subject.ts";
import { ownCluster } from "./support/node.ts";

/** The tests' image has no Node, so that of this machine, which is the cluster's node, is mounted into it. */
const podTemplate = {
  spec: {
    containers: [{ name: "code", volumeMounts: [{ name: "node", mountPath: "/usr/bin/node", readOnly: true }] }],
    volumes: [{ name: "node", hostPath: { path: realpathSync(process.execPath), type: "File" } }],
  },
};

// The groups that need Node besides Python; everything else is in the suite without it.
describe.skipIf(ownCluster === undefined || !backend("node").available)("Kubernetes", needs("kubernetes"), () => {
  testCodeExecutor(
    { describe, it, afterAll },
    kubernetesSubject(", with Node,", (options) => createExecutor({ podTemplate, ...options })),
    { concurrent: true, groups: ["languages", "javascript functions", "host functions"] },
  );
});
