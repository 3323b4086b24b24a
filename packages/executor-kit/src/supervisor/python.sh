# shellcheck shell=sh
# Becomes the program $1, in Python. -I -S keeps files of the work directory and of the image from being imported.
program=$1
shift
for python in python3 python; do
  if command -v "$python" >/dev/null 2>&1; then exec "$python" -I -S -X utf8 -c "$program" "$@"; fi
done
echo "there is no python3 in this image" >&2
exit 127
