#!/usr/bin/env bash
# Runs the tests that the version of Node can affect, under another version:
#
#   scripts/ci/under-node.sh VERSION    the tests of the core and the kit, of processes on this host outside sandboxes, and of the
#                                       AI SDK 7, whose harnesses require Node 22; if FENCED_SUITE is "full", the tests of all
#                                       packages that do more than talk to a container, a kernel or another host
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

version=${1:?Pass a version of Node.}
projects=(core executor-kit executor-local ai-sdk-on-ai-7 model-ai-sdk-on-ai-7)
left_out=()
if [[ ${FENCED_SUITE-} == full ]]; then
  projects=(test-support demo ai-sdk-on-ai-7 model-ai-sdk-on-ai-7)
  for folder in packages/*; do
    # Code in containers, in kernels and on other hosts does not depend on the Node outside them. The conformance suite's own
    # tests are about its cases; the executors that are tested here show that these run.
    [[ $folder == */executor-@(docker|jupyter|kubernetes|ssh|testkit) ]] || projects+=("${folder#packages/}")
  done
else
  export FENCED_SUITE=processes FENCED_REQUIRE=python3,bash,node,typescript
  # Sandboxes, supervisors, servers of kept sessions, Python interpreters and the creation of virtual environments do not depend on
  # the Node outside them. Large and deep trees take much of the time, and the same calls as small ones.
  left_out=("**/workspace/hostile*" "**/sandbox/**" "**/supervisor/**" "**/warm.test.ts" "**/stateful.test.ts" "**/control-group.test.ts" "**/supervised-hostile.test.ts" "**/virtual-env.test.ts" "**/kept/conformance-kept.test.ts" "**/kept/kept-sandbox.test.ts")
fi
export FENCED_WORKERS=${FENCED_WORKERS-2}
export FENCED_TEST_REPORT=$PWD/.reports/test-node-$version.json
npx -y -p "node@$version" -c "node scripts/test.mjs ${projects[*]/#/--project=} ${left_out[*]/#/--exclude=}"
