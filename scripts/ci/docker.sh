#!/usr/bin/env bash
# Docker and Podman for the tests, on Debian, as root:
#
#   scripts/ci/docker.sh up         installs what is missing, starts dockerd if no daemon answers, registers gVisor with it,
#                                   creates the test images
#   scripts/ci/docker.sh down       stops the dockerd that "up" started
#   scripts/ci/docker.sh packages   prints what "up" installs, for packages.sh
#
# The images are pulled if a registry answers, otherwise built from this machine's Debian packages and Node, and kept in
# the cache: fenced-test:python has Python with pip but no Node, fenced-test:node has Node and BusyBox but no Python.
set -euo pipefail

cache=${XDG_CACHE_HOME:-$HOME/.cache}/fenced
state=$cache/dockerd
daemon_file=/etc/docker/daemon.json
here=$(dirname "${BASH_SOURCE[0]}")
mkdir -p "$cache"

up() {
  # shellcheck disable=SC2046
  "$here/packages.sh" $(packages)
  register_gvisor
  docker version >/dev/null 2>&1 || start_daemon
  offers_gvisor || reload_daemon
  local name
  for name in python node; do
    has_image "$name" || pull_image "$name" || make_image "$name"
    podman image exists "fenced-test:$name" || docker save "fenced-test:$name" | podman load --quiet
  done
  docker images fenced-test
}

packages() {
  echo docker.io:dockerd podman:podman catatonit
  echo runsc
  # Images are built from these if none can be pulled.
  echo python3 python3-pip busybox-static
}

# gVisor's kernel as a runtime of the daemon. Of its platforms, ptrace works everywhere; KVM hangs on some virtual machines.
# Without a network of its own it needs no firewall, which the daemon of these tests does not have. It ignores the filters of system
# calls that containers are created with unless told otherwise.
register_gvisor() {
  python3 - "$daemon_file" <<'PROGRAM'
import json, os, sys

file = sys.argv[1]
settings = {}
if os.path.exists(file):
    with open(file) as source:
        settings = json.load(source)
runtimes = settings.setdefault("runtimes", {})
wanted = {"path": "/usr/bin/runsc", "runtimeArgs": ["--platform=ptrace", "--network=none", "--oci-seccomp"]}
if runtimes.get("runsc") != wanted:
    runtimes["runsc"] = wanted
    os.makedirs(os.path.dirname(file), exist_ok=True)
    with open(file + ".new", "w") as target:
        json.dump(settings, target, indent=2)
    os.replace(file + ".new", file)
PROGRAM
}

offers_gvisor() {
  docker info --format '{{json .Runtimes}}' | grep -q '"runsc"'
}

# Running containers do not notice. A daemon elsewhere, or one with another file of settings, goes without gVisor, and so do the tests.
reload_daemon() {
  local pid
  pid=$(cat "$state/dockerd.pid" 2>/dev/null || cat /var/run/docker.pid 2>/dev/null) || return 0
  kill -HUP "$pid" || return 0
  for _ in {1..50}; do
    ! offers_gvisor || return 0
    sleep 0.2
  done
}

# Containers need no access to the network, so the firewall stays unchanged. In a container, overlays cannot be nested.
start_daemon() {
  mkdir -p "$state"
  local options
  for options in "" "--storage-driver=vfs"; do
    # shellcheck disable=SC2086
    setsid nohup dockerd --iptables=false --ip6tables=false --pidfile="$state/dockerd.pid" $options \
      >"$state/dockerd.log" 2>&1 </dev/null &
    if answers; then
      echo "Started dockerd $options"
      return
    fi
    stop_daemon
  done
  tail -n 20 "$state/dockerd.log"
  return 1
}

answers() {
  local attempt
  for attempt in {1..60}; do
    docker version >/dev/null 2>&1 && return
    ((attempt < 10)) || [[ -e $state/dockerd.pid ]] || return 1
    sleep 0.5
  done
  return 1
}

has_image() {
  docker image inspect "fenced-test:$1" >/dev/null 2>&1
}

pull_image() {
  local source
  case $1 in
    python) source=python:3.11-slim-bookworm ;;
    node) source=node:22-alpine ;;
  esac
  [[ ! -e $cache/$1-image.tar ]] || return 1
  timeout 300 docker pull --quiet "$source" >/dev/null 2>&1 && docker tag "$source" "fenced-test:$1"
}

make_image() {
  local file=$cache/$1-image.tar directory
  if [[ ! -e $file ]]; then
    echo "Making the image fenced-test:$1."
    directory=$(mktemp --directory)
    "fill_$1" "$directory"
    tar --create --directory "$directory" --file "$file.new" .
    mv "$file.new" "$file"
    rm -rf "$directory"
  fi
  docker import "$file" "fenced-test:$1" >/dev/null
}

fill_python() {
  "$here/debian-files.sh" "$1" python3 python3-pip
}

fill_node() {
  local node library program
  mkdir -p "$1"/{bin,dev,etc,proc,sys,usr/bin}
  mkdir -m 1777 "$1/tmp"
  cp --dereference /bin/busybox "$1/bin/busybox"
  for program in $(/bin/busybox --list); do
    [[ $program == busybox ]] || ln -s busybox "$1/bin/$program"
  done
  node=$(node -p 'fs.realpathSync(process.execPath)')
  cp "$node" "$1/usr/bin/node"
  for library in $(ldd "$node" | grep --only-matching '/[^ ]*'); do
    mkdir -p "$1$(dirname "$library")"
    cp --dereference "$library" "$1$library"
  done
}

down() {
  [[ -e $state/dockerd.pid ]] || return 0
  stop_daemon
  rm -rf "$state"
}

stop_daemon() {
  local pid
  pid=$(cat "$state/dockerd.pid" 2>/dev/null) || return 0
  kill "$pid" 2>/dev/null || return 0
  for _ in {1..100}; do
    kill -0 "$pid" 2>/dev/null || return 0
    sleep 0.2
  done
}

case ${1-} in
  up | down | packages) "$1" ;;
  *)
    sed -n '2,11s/^# \{0,1\}//p' "$0"
    exit 2
    ;;
esac
