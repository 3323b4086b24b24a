#!/usr/bin/env bash
# Installs the OpenSSH client and server, for tests that start their own server on the loopback interface.
# If packages are missing, run it as root on Debian.
#
#   scripts/ci/ssh.sh up         installs openssh-client and openssh-server; starts nothing, changes no configuration
#   scripts/ci/ssh.sh packages   prints what "up" installs, for packages.sh
set -euo pipefail

up() {
  # shellcheck disable=SC2046
  "$(dirname "${BASH_SOURCE[0]}")/packages.sh" $(packages)
  ssh -V
}

packages() {
  # Tests inspect the kit's host programs with ps.
  echo openssh-client:ssh openssh-server:/usr/sbin/sshd procps:ps
}

case ${1:-} in
up | packages) "$1" ;;
*)
  sed -n '2,6s/^# \{0,1\}//p' "$0"
  exit 2
  ;;
esac
