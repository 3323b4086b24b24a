# shellcheck shell=sh
# Becomes the supervisor ($1) if Python is available, otherwise the shell program that answers instead ($2). Both get the
# remaining arguments. -I -S keeps Python from importing files of the work directory and the image.
supervisor=$1 inventory=$2
shift 2
for python in python3 python; do
  if command -v "$python" >/dev/null 2>&1; then exec "$python" -I -S -X utf8 -c "$supervisor" "$@"; fi
done
eval "$inventory"
