# shellcheck shell=sh
#
# Becomes the supervisor of blocks, a Python program that arrives on standard input: runs the words after $3 in the work
# directory $2, with the PATH $3 if it is set. First prints $1 and its own process id: the supervisor hides its variables from
# other processes, so only the id identifies it.
greeting=$1 workspace=$2 path=$3
shift 3
cd -P "$workspace" || exit
[ -z "$path" ] || PATH=$path
printf '%s %s\n' "$greeting" "$$"
exec "$@"
