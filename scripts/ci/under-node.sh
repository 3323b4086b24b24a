#!/usr/bin/env bash
# Runs the tests that another version of Node can change, under it:
#
#   scripts/ci/under-node.sh VERSION    those of the core and the kit, of processes of this host outside of sandboxes, and of the
#                                       AI SDK 7, whose harnesses say that they need Node 22; where FENCED_SUITE is "full", those of
#                                       all packages that do more than talk to a container, a kernel or another host
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

version=${1:?Say which version of Node.}
projects=(core executor-kit executor-local ai-sdk-on-ai-7)
left_out=()
if [[ ${FENCED_SUITE-} == full ]]; then
  projects=(test-support demo ai-sdk-on-ai-7 model-ai-sdk-on-ai-7)
  for folder in packages/*; do
    # What runs in containers, in kernels and on other hosts does not depend on the Node outside of them, and the conformance
    # suite's own tests are about its cases; that these run is seen where the executors that are tested here pass it.
    [[ $folder == */executor-@(docker|jupyter|kubernetes|ssh|testkit) ]] || projects+=("${folder#packages/}")
  done
else
  export FENCED_SUITE=processes FENCED_REQUIRE=python3,bash,node,typescript
  # What is in a sandbox, what a supervisor and its interpreters of Python do, how a virtual environment is made, and how files carry
  # calls, does not depend on the Node outside of it.
  left_out=("**/sandbox/**" "**/supervisor/warm.test.ts" "**/executor-local/test/warm.test.ts" "**/executor-local/test/stateful.test.ts"
    "**/supervisor/stateful.test.ts" "**/control-group.test.ts" "**/supervised-hostile.test.ts" "**/virtual-env.test.ts" "**/host-functions-by-files.test.ts")
fi
npx -y -p "node@$version" -c "node scripts/test.mjs ${projects[*]/#/--project=} ${left_out[*]/#/--exclude=}"
