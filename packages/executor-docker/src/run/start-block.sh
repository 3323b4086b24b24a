# shellcheck shell=sh
# Becomes the command behind $1, the session's directory, in which a user without a home gets one.
if [ -z "$HOME" ] || [ "$HOME" = / ] || [ ! -w "$HOME" ]; then export HOME="$1/home"; fi
shift
exec "$@"
