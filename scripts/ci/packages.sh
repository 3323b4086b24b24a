#!/usr/bin/env bash
# Installs missing Debian packages, as root, all at once, and without starting any service.
#
#   scripts/ci/packages.sh PACKAGE[:PROGRAM]...    a package counts as installed if its PROGRAM exists, wherever it comes from
set -euo pipefail

policy=/usr/sbin/policy-rc.d

main() {
  local missing=() entry
  for entry in "$@"; do
    is_here "${entry%%:*}" "${entry#"${entry%%:*}"}" || missing+=("${entry%%:*}")
  done
  ((${#missing[@]} == 0)) || install "${missing[@]}"
}

is_here() {
  local package=$1 program=${2#:}
  [[ -n $program ]] && command -v "$program" >/dev/null && return
  dpkg-query --show --showformat='${db:Status-Status}' "$package" 2>/dev/null | grep -qx installed
}

# Where there is an init system, Debian's packages would start servers that the whole network can reach.
install() {
  local forbidden=
  if [[ ! -e $policy ]]; then
    printf '#!/bin/sh\nexit 101\n' >"$policy"
    chmod +x "$policy"
    forbidden=yes
  fi
  echo "Installing $*."
  local status=0
  { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >/dev/null; } ||
    status=$?
  [[ -z $forbidden ]] || rm -f "$policy"
  return "$status"
}

main "$@"
