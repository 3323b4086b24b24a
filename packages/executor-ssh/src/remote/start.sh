# shellcheck shell=sh
#
# Becomes the keeper ($3), a Python program, with the remaining arguments. First prints $1, which nobody else knows, because a login
# shell may have printed something before. Searches for Python on the PATH $2, if it is set, and then on that of the account.
# -I -S keeps Python from importing files of the account.
greeting=$1 given=$2 keeper=$3
shift 3
printf '%s\n' "$greeting"
find_python() {
  [ -n "$1" ] && PATH=$1 && { command -v python3 || command -v python; }
}
python=$(find_python "$given") || python=$(find_python "$PATH") || {
  echo 'there is no python3 on its PATH' >&2
  exit 127
}
exec "$python" -I -S -X utf8 -c "$keeper" "$@"
