# shellcheck shell=sh
# Runs the image's own command ($@). Creates a writable home for a user without one, such as a purely numeric user. If
# $FENCED_LEASHED is set, ends the command when standard input, which this program holds open, ends. If $FENCED_GATE is set, first
# reads more variables, one a line, up to an empty line.
if [ -z "$HOME" ] || [ "$HOME" = / ] || [ ! -w "$HOME" ]; then
  HOME=/tmp/home
  export HOME
  mkdir -p "$HOME"
fi
leashed=$FENCED_LEASHED
unset FENCED_LEASHED
[ -n "$leashed" ] || exec "$@"
if [ -n "$FENCED_GATE" ]; then
  unset FENCED_GATE
  while read -r variable && [ -n "$variable" ]; do
    export "${variable?}"
  done
fi
exec 3<&0
"$@" </dev/null &
server=$!
(
  cat <&3 >/dev/null
  kill -KILL $server
) &
wait $server
