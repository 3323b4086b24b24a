#!/usr/bin/env bash
# Sets up the Jupyter servers that tests run on. If packages are missing, run it as root on Debian.
#
#   scripts/ci/jupyter.sh up         installs jupyter_server 1.x and a kernel for R from Debian and, if pip reaches an
#                                    index, 2.x into ~/.cache/fenced/jupyter-server-2; builds an image with 1.x if there
#                                    is Docker
#   scripts/ci/jupyter.sh packages   prints what "up" installs from Debian, for packages.sh
set -euo pipefail

here=$(dirname "${BASH_SOURCE[0]}")
environment=${XDG_CACHE_HOME:-$HOME/.cache}/fenced/jupyter-server-2

up() {
  # shellcheck disable=SC2046
  "$here/packages.sh" $(packages)
  echo "jupyter_server $(/usr/bin/python3 -c 'import jupyter_server; print(jupyter_server.__version__)') is installed."
  version_two || echo "No jupyter_server 2.x: pip could not install it (see above). Its tests are skipped."
  image || echo "No image with a Jupyter server: there is no Docker, or the build failed. Its tests are skipped."
}

packages() {
  echo jupyter-server python3-ipykernel python3-matplotlib r-cran-irkernel python3-venv python3-pip
  # Keeps matplotlib from bringing SciPy, and with it a compiler and its headers.
  echo python3-munkres
}

version_two() {
  if "$environment/bin/python" -c 'import jupyter_server, ipykernel' 2>/dev/null; then
    echo "jupyter_server 2.x is installed."
    return
  fi
  rm -rf "$environment"
  python3 -m venv "$environment" &&
    timeout 300 "$environment/bin/python" -m pip install -qq --retries 0 --timeout 10 \
      'jupyter_server>=2,<3' ipykernel || {
    rm -rf "$environment"
    return 1
  }
}

# From this machine's packages, since an image registry may be out of reach.
image() {
  docker version >/dev/null 2>&1 || return
  docker image inspect fenced-test:jupyter >/dev/null 2>&1 && return
  local directory status=0
  directory=$(mktemp --directory)
  "$here/debian-files.sh" "$directory" python3-pip jupyter-server python3-ipykernel &&
    tar --create --directory "$directory" . | docker import - fenced-test:jupyter >/dev/null || status=$?
  rm -rf "$directory"
  return "$status"
}

case ${1:-} in
up | packages) "$1" ;;
*)
  sed -n '2,8s/^# \{0,1\}//p' "$0"
  exit 2
  ;;
esac
