# shellcheck shell=sh
# Waits until its input ends, which means that the program that started it has ended, and then cleans up after that program.
# Arguments: the mark of processes (a name and a value), a control group, a directory to remove if it is owned, the marker file in
# it that says so, the number of prefixes, the prefixes, what to remove. It kills processes until it finds none, and only then
# removes files, with the functions of `removal.sh`, because nothing in the session changes them any more. The owned directory comes
# last and is entered first, so that no link can lead elsewhere. A named pipe that somebody puts in place of the marker at that moment
# blocks only this shell.
trap '' HUP INT TERM
while read -r _; do :; done
mark=$1=$2 owner=$2 group=$3 owned=$4 marker=$5 prefixes=$6
shift 6
[ ! -d "$group" ] || { echo 1 >"$group/cgroup.kill"; } 2>/dev/null
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
for round in 1 2 3 4 5 6 7 8 9; do
  [ -d "$group" ] || break
  find "$group" -depth -type d -exec rmdir -- {} \; 2>/dev/null
  [ ! -d "$group" ] || sleep "$round"
done
[ -n "$owned" ] && cd -P -- "$owned" || exit
[ -f "$marker" ] && [ ! -L "$marker" ] || exit
[ "$(head -c 100 "$marker")" = "$owner" ] || exit
detached "$owned" || exit
rm -rf -- ./* ./.[!.]* ./..?*
cd / && rmdir -- "$owned" && rmdir -- "${owned%/*}"
