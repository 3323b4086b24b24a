# shellcheck shell=sh
# Waits until its input ends, which means that the program that started it has ended, and then cleans up after that program.
# Arguments: the mark of processes (a name and a value), the owner of a directory, control groups (one a line), a directory to remove
# if it is owned, the marker file in it that says so, a named pipe, the number of prefixes, the prefixes, what to remove. It kills
# processes until it finds none, and only then removes files, with the functions of `removal.sh`, because nothing in the session changes
# them any more. The owned directory comes last and is entered first, so that no link can lead elsewhere. A named pipe that somebody
# puts in place of the marker at that moment blocks only this shell. Until its input ends, it makes the named pipe among its arguments
# for each line that it reads, because a large program takes much longer to start another one. That program may end before it reads the
# answer.
trap '' HUP INT TERM PIPE
mark=$1=$2 owner=$3 groups=$4 owned=$5 marker=$6 pipe=$7 prefixes=$8
shift 8
while read -r _; do
  if mkfifo -m 600 -- "$pipe"; then echo made; else echo failed; fi
done
# Calls $1 with each line of $2, whose characters stand for themselves.
for_each() {
  usual=$IFS IFS='
'
  set -f
  for line in $2; do
    set +f
    IFS=$usual
    "$1" "$line"
  done
  set +f
  IFS=$usual
}
kill_group() { [ ! -d "$1" ] || { echo 1 >"$1/cgroup.kill"; } 2>/dev/null; }
remove_group() {
  for round in 1 2 3 4 5 6 7 8 9; do
    [ -d "$1" ] || break
    find "$1" -depth -type d -exec rmdir -- {} \; 2>/dev/null
    [ ! -d "$1" ] || sleep "$round"
  done
}

for_each kill_group "$groups"
for _ in 1 2 3 4 5 6 7 8 9; do
  found=$(grep -lsazxF -e "$mark" /proc/[0-9]*/environ)
  [ -n "$found" ] || break
  for place in $found; do
    place=${place#/proc/}
    kill -KILL "${place%/environ}"
  done
done
while [ "$prefixes" -gt 0 ]; do
  remove_trees "$1"*
  shift
  prefixes=$((prefixes - 1))
done
remove_trees "$@"
for_each remove_group "$groups"
[ -n "$owned" ] && cd -P -- "$owned" || exit
[ -f "$marker" ] && [ ! -L "$marker" ] || exit
[ "$(head -c 100 "$marker")" = "$owner" ] || exit
detached "$PWD" || exit
rm -rf -- ./* ./.[!.]* ./..?*
cd / && rmdir -- "$owned" && rmdir -- "${owned%/*}"
