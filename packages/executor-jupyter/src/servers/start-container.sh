# shellcheck shell=sh
# Runs the image's own command ($@). Creates a writable home for a user without one, such as a purely numeric user. If
# $FENCED_LEASHED is set, first reads more variables, one a line, up to an empty line, and ends the command when standard input,
# which this program holds open, ends. If $FENCED_SERVES is set, the command does both itself.
if [ -z "$HOME" ] || [ "$HOME" = / ] || [ ! -w "$HOME" ]; then
  HOME=/tmp/home
  export HOME
  mkdir -p "$HOME"
fi
# Python searches the directory for a user's packages only if it exists when Python starts, and pip creates it later. pip may
# install into it although the image's distribution manages its Python.
export PIP_BREAK_SYSTEM_PACKAGES="${PIP_BREAK_SYSTEM_PACKAGES-1}"
packages=$(python3 -m site --user-site 2>/dev/null)
[ -z "$packages" ] || mkdir -p "$packages"
if [ -n "$FENCED_SERVES" ]; then
  unset FENCED_SERVES
  exec "$@"
fi
leashed=$FENCED_LEASHED
unset FENCED_LEASHED
[ -n "$leashed" ] || exec "$@" </dev/null
while read -r variable && [ -n "$variable" ]; do
  export "${variable?}"
done
exec 3<&0
"$@" </dev/null &
server=$!
(
  cat <&3 >/dev/null
  kill -KILL $server
) &
wait $server
