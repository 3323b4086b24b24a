#!/usr/bin/env bash
# Makes fenced-test:analysis, the image with pandas and matplotlib that examples/packages-in-the-sandbox.ts runs in.
#
#   scripts/ci/analysis-image.sh up   needs Docker with fenced-test:python, and pip with an index, in a build or on this machine
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
dockerfile=$here/../../examples/packages-in-the-sandbox/Dockerfile

up() {
  docker image inspect fenced-test:analysis >/dev/null 2>&1 && return
  build "$(dirname "$dockerfile")" --build-arg BASE=fenced-test:python --build-arg PIP_BREAK_SYSTEM_PACKAGES=1 || from_wheels
}

# If a build cannot reach an index but this machine can: the same packages, downloaded here for the image's Python.
from_wheels() {
  local version
  # Not local: it is removed at the end of the program.
  context=$(mktemp --directory)
  trap 'rm -rf "$context"' EXIT
  version=$(docker run --rm fenced-test:python python3 -c 'import sys; print("%d.%d" % sys.version_info[:2])')
  timeout 500 python3 -m pip download --quiet --retries 0 --timeout 10 --only-binary :all: --python-version "$version" \
    --dest "$context/wheels" pandas matplotlib
  sed -e 's|^RUN .*|COPY wheels /wheels\nRUN python3 -m pip install --break-system-packages --no-index --find-links /wheels pandas matplotlib|' \
    "$dockerfile" >"$context/Dockerfile"
  build "$context" --build-arg BASE=fenced-test:python
}

build() {
  timeout 500 docker build --quiet --network host --tag fenced-test:analysis "${@:2}" "$1"
}

case ${1-} in
  up) up ;;
  *)
    sed -n '2,4s/^# \{0,1\}//p' "$0"
    exit 2
    ;;
esac
