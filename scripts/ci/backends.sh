#!/usr/bin/env bash
# Sets up all backends that tests run on. If something is missing, run it as root on Debian.
#
#   scripts/ci/backends.sh install   installs missing Debian packages
#   scripts/ci/backends.sh up        starts dockerd if no daemon answers, and creates images and environments
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

install() {
  # shellcheck disable=SC2046
  ./packages.sh bash:bash python3:/usr/bin/python3 openssl:openssl git:git ca-certificates bubblewrap:bwrap chromium:chromium shellcheck:shellcheck \
    $(./docker.sh packages) $(./jupyter.sh packages) $(./ssh.sh packages) $(./databases.sh packages)
}

up() {
  ./docker.sh up
  ./jupyter.sh up
  ./ssh.sh up
  ./databases.sh up
  # Takes minutes and serves only one example, so only in nightly runs.
  [[ ${FENCED_SUITE-} != full ]] || ./analysis-image.sh up || echo "No image with pandas and matplotlib. Its example is skipped."
}

case ${1-} in
install | up) "$1" ;;
*)
  sed -n '2,5s/^# \{0,1\}//p' "$0"
  exit 2
  ;;
esac
