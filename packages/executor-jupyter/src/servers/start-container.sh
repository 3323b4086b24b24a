# shellcheck shell=sh
# Runs the image's own command ($@). Creates a writable home for a user without one, such as one with only a number. If
# $FENCED_LEASHED is set, ends the command when standard input, which this program holds open, ends.
if [ -z "$HOME" ] || [ "$HOME" = / ] || [ ! -w "$HOME" ]; then
  HOME=/tmp/home
  export HOME
  mkdir -p "$HOME"
fi
leashed=$FENCED_LEASHED
unset FENCED_LEASHED
[ -n "$leashed" ] || exec "$@"
exec 3<&0
"$@" </dev/null &
server=$!
(
  cat <&3 >/dev/null
  kill -KILL $server
) &
wait $server
