# shellcheck shell=sh
# Gives a user without a home, as most are that only have a number, one to write to, and runs the image's own command ($@). Where
# $FENCED_LEASHED says so, ends it when the standard input that this program holds open ends.
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
