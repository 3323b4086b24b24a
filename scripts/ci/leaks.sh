#!/usr/bin/env bash
# Finds what tests and examples leave behind:
#
#   scripts/ci/leaks.sh list                    prints what exists: containers, volumes and networks of Docker and
#                                               Podman, this project's processes and its temporary directories
#   scripts/ci/leaks.sh check FILE [SECONDS]    fails if there is more than FILE lists, and names it; waits up to
#                                               SECONDS (30) for what is about to end
set -euo pipefail

# Variables by which executors identify their processes.
marks='FENCED_(SESSION|BLOCK|KERNEL|DISPLAYS|SERVER|SSH)[A-Z_]*='

list() {
  local engine
  for engine in docker podman; do
    command -v "$engine" >/dev/null && "$engine" ps --quiet >/dev/null 2>&1 || continue
    # Containers of Kubernetes disappear some time after their pods, which are listed below.
    "$engine" ps --all --no-trunc --format "$engine container {{.Names}} ({{.ID}}, of {{.Image}})" | grep -v " k8s_" || true
    "$engine" volume ls --format "$engine volume {{.Name}}"
    "$engine" network ls --format "$engine network {{.Name}}"
  done
  "$(dirname "${BASH_SOURCE[0]}")/kubernetes.sh" pods
  processes
  find "${TMPDIR:-/tmp}" /var/tmp -maxdepth 1 -name 'fenced-*' -printf 'temporary %p\n' 2>/dev/null || true
}

processes() {
  local place pid
  for place in /proc/[0-9]*; do
    pid=${place#/proc/}
    if grep -qszE "^$marks" "$place/environ" || grep -qszxF fenced-leash "$place/cmdline"; then
      echo "process $pid: $(tr '\0\n' '  ' <"$place/cmdline" 2>/dev/null | cut -c 1-150)"
    fi
  done
}

check() {
  local before=$1 patience=${2:-30} left
  for ((waited = 0; ; waited++)); do
    left=$(comm -13 <(sort "$before") <(list | sort))
    [[ -n $left ]] || break
    if ((waited >= patience)); then
      echo "Left behind:"
      echo "$left"
      return 1
    fi
    sleep 1
  done
  echo "Nothing was left behind."
}

case ${1-} in
  list | check) "$@" ;;
  *)
    sed -n '2,8s/^# \{0,1\}//p' "$0"
    exit 2
    ;;
esac
