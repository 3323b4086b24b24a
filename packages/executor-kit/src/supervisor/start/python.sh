# shellcheck shell=sh
# Becomes the Python program $1. -I -S keeps Python from importing files of the work directory and the image.
program=$1
shift
for python in python3 python; do
  if command -v "$python" >/dev/null 2>&1; then exec "$python" -I -S -X utf8 -c "$program" "$@"; fi
done
echo "there is no \`python3\` on the PATH" >&2
exit 127
