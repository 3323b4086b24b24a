#!/usr/bin/env bash
# Installs Redis and PostgreSQL, for tests that start their own servers on the loopback interface.
# If packages are missing, run it as root on Debian.
#
#   scripts/ci/databases.sh up         installs redis-server and postgresql; starts nothing
#   scripts/ci/databases.sh packages   prints what "up" installs, for packages.sh
set -euo pipefail

up() {
  # shellcheck disable=SC2046
  "$(dirname "${BASH_SOURCE[0]}")/packages.sh" $(packages)
  redis-server --version
  ls /usr/lib/postgresql
}

packages() {
  echo redis-server:redis-server postgresql:psql
}

case ${1:-} in
up | packages) "$1" ;;
*)
  sed -n '2,6s/^# \{0,1\}//p' "$0"
  exit 2
  ;;
esac
