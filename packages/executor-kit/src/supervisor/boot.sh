# shellcheck shell=sh
# Becomes the supervisor ($1) if there is Python, else the shell program that answers in its place ($2). Both get the other
# arguments. -I -S keeps files of the work directory and of the image from being imported.
supervisor=$1 inventory=$2
shift 2
for python in python3 python; do
  if command -v "$python" >/dev/null 2>&1; then exec "$python" -I -S -X utf8 -c "$supervisor" "$@"; fi
done
eval "$inventory"
