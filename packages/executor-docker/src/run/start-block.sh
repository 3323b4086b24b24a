# shellcheck shell=sh
# Becomes the command after $1. $1 is the session's directory, in which a user without a home directory gets one.
if [ -z "$HOME" ] || [ "$HOME" = / ] || [ ! -w "$HOME" ]; then export HOME="$1/home"; fi
shift
if [ -n "${FENCED_PATH+given}" ]; then
  export PATH="$FENCED_PATH"
  unset FENCED_PATH
fi
exec "$@"
