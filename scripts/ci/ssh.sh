#!/usr/bin/env bash
# Gives this machine OpenSSH's client and server, for tests that start a server of their own on the loopback interface.
# As root on Debian, where packages are missing.
#
#   scripts/ci/ssh.sh up      installs openssh-client and openssh-server; starts nothing, changes no configuration
set -euo pipefail

policy=/usr/sbin/policy-rc.d

up() {
  local missing=()
  command -v ssh >/dev/null && command -v ssh-keygen >/dev/null || missing+=(openssh-client)
  [[ -x /usr/sbin/sshd ]] || missing+=(openssh-server)
  # The kit's host programs are looked at with ps.
  command -v ps >/dev/null || missing+=(procps)
  if ((${#missing[@]} > 0)); then install "${missing[@]}"; fi
  ssh -V
}

# Debian's package would start a server on all addresses, which nobody here asked for.
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

case ${1:-} in
up) up ;;
*)
  sed -n '2,6s/^# \{0,1\}//p' "$0"
  exit 2
  ;;
esac
