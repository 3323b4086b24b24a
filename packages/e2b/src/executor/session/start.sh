# shellcheck shell=sh
# Enters the work directory $2, which may be relative to the home directory, says where it is after the word $1, and becomes the
# program that follows, in which the word $1 stands for the work directory.
word=$1 given=$2
shift 2
{ [ -z "$HOME" ] || cd; } && mkdir -p -- "$given" && cd -- "$given" || exit 1
workspace=$(pwd -P)
[ -w . ] || {
  printf '%s is not writable\n' "$workspace" >&2
  exit 1
}
for each; do
  shift
  [ "$each" = "$word" ] && each=$workspace
  set -- "$@" "$each"
done
printf '%s %s\n' "$word" "$workspace"
exec "$@"
