#!/usr/bin/env bash
# A `kind` cluster with the real agent-sandbox controller and a network plugin that enforces policies (Calico), for tests and for
# experiments. Needs docker, kind and kubectl, and downloads images and manifests.
#
#   scripts/kind.sh up      creates the cluster, installs both, loads the tests' image; prints the KUBECONFIG to use
#   scripts/kind.sh test    runs the tests of executor-kubernetes on it, and claims on a pool of the real agent-sandbox
#   scripts/kind.sh down    deletes the cluster
#
# CI has no kind and does not run this: "up" and "down" have only been checked by shellcheck. The claim of "test" has been run on
# the cluster of scripts/ci/kubernetes.sh, with the tests' simulated controller and network plugin. If something has changed since,
# correct the versions below.
set -euo pipefail

cluster=${FENCED_KIND_CLUSTER:-fenced}
agent_sandbox=${FENCED_AGENT_SANDBOX:-v1.0.10}
calico=${FENCED_CALICO:-v3.30.3}
image=fenced-test:python
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
export KUBECONFIG=${XDG_CACHE_HOME:-$HOME/.cache}/fenced/kind-$cluster

up() {
  local name
  for name in docker kind kubectl; do
    command -v "$name" >/dev/null || {
      echo "$name is not on the PATH." >&2
      return 1
    }
  done
  docker image inspect "$image" >/dev/null 2>&1 || "$here/ci/docker.sh" up
  mkdir -p "$(dirname "$KUBECONFIG")"
  # Calico replaces kind's own plugin, which enforces policies only in newer versions.
  kind create cluster --name "$cluster" --config - <<END
kind: Cluster
apiVersion: kind.x-k8s.io/v1alpha4
networking: { disableDefaultCNI: true, podSubnet: 192.168.0.0/16 }
END
  kubectl apply --filename "https://raw.githubusercontent.com/projectcalico/calico/$calico/manifests/calico.yaml"
  kubectl --namespace kube-system rollout status daemonset/calico-node --timeout 10m
  kubectl wait --for condition=Ready nodes --all --timeout 5m
  # --server-side: its resources are longer than an annotation may be.
  kubectl apply --server-side --filename "https://github.com/kubernetes-sigs/agent-sandbox/releases/download/$agent_sandbox/sandbox-with-extensions.yaml"
  kubectl --namespace agent-sandbox-system wait --for condition=Ready pods --all --timeout 5m
  kind load docker-image "$image" --name "$cluster"
  echo "export KUBECONFIG=$KUBECONFIG"
}

test_all() {
  cd "$here/.."
  FENCED_REQUIRE=kubernetes node scripts/test.mjs --project=executor-kubernetes
  claim
}

# One session on a pool of the real controller, cut off from every network.
claim() {
  # In this directory, both programs resolve the package to this one.
  cd "$here/../packages/executor-kubernetes"
  node --import tsx --conditions=@fenced/source --input-type=module <<'END' | kubectl apply --filename -
import { sandboxTemplate } from "@fenced/executor-kubernetes";
const pool = {
  apiVersion: "extensions.agents.x-k8s.io/v1beta1",
  kind: "SandboxWarmPool",
  metadata: { name: "fenced-kind" },
  spec: { replicas: 2, sandboxTemplateRef: { name: "fenced-kind" } },
};
const template = sandboxTemplate("fenced-kind", { image: "fenced-test:python", network: "none" });
console.log(JSON.stringify({ apiVersion: "v1", kind: "List", items: [template, pool] }));
END
  kubectl wait --for jsonpath='{.status.readyReplicas}'=2 sandboxwarmpool/fenced-kind --timeout 5m
  node --import tsx --conditions=@fenced/source --input-type=module <<'END'
import { KubernetesCommandLineCodeExecutor } from "@fenced/executor-kubernetes";
// Node 20 does not support `await using`.
const executor = new KubernetesCommandLineCodeExecutor({ warmPool: { name: "fenced-kind" }, network: "none" });
try {
  const { output } = await executor.executeCodeBlocks([{ language: "python", code: "print('claimed')" }]);
  if (output !== "claimed\n") throw new Error(output);
  console.log("A session claimed", executor.podName);
} finally {
  await executor.stop();
}
END
  kubectl delete sandboxwarmpool/fenced-kind sandboxtemplate/fenced-kind
}

down() {
  kind delete cluster --name "$cluster"
  rm -f "$KUBECONFIG"
}

case ${1-} in
  up | down) "$1" ;;
  test) test_all ;;
  *)
    sed -n '2,7s/^# \{0,1\}//p' "$0"
    exit 2
    ;;
esac
