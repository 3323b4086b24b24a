#!/usr/bin/env bash
# Runs what a newcomer runs, as on a machine with Node alone: no Docker, Podman, bubblewrap, Python, ssh, openssl or Jupyter. A test
# that needs one of them without naming it with `needs` fails here, and so does a command that does.
#
#   scripts/ci/node-alone.sh                     npm test and npm run demo
#   scripts/ci/node-alone.sh COMMAND...          another command on such a machine: node scripts/test.mjs --project=egress
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
# A shell and what every Unix has beside it. A program that is missing on this machine is missing there.
for name in sh node npm npx cat ls cp mv rm mkdir rmdir mkfifo ln chmod chown touch head tail sort uniq wc tr cut sed grep awk find \
  xargs env id uname date sleep true false test expr basename dirname readlink realpath mktemp tee printf echo pwd ps kill tar gzip \
  dd stat df du od seq timeout nice nohup sync git; do
  program=$(type -P "$name") || continue
  # Links of version managers look at the name that they are called by.
  ln -s "$program" "$folder/$name"
done

run() {
  # Sockets of daemons are found without any program, and nobody listens on that port. Jupyter's Pythons and Chromium are found by
  # their full paths. Nothing is required there.
  env -u FENCED_REQUIRE -u FENCED_BACKENDS -u VIRTUAL_ENV -u DOCKER_CONTEXT -u KUBECONFIG -u OPENAI_API_KEY -u OPENAI_BASE_URL \
    PATH="$folder" DOCKER_HOST=tcp://127.0.0.1:9 FENCED_WITHOUT=jupyter,jupyter2,chromium "$@"
}

if (($# > 0)); then
  run "$@"
else
  run npm test
  run npm run demo
fi
