# shellcheck shell=sh
# Waits until the kernel, which holds the other end of standard input, has ended. Then kills all processes that have the
# kernel's mark ($1, NAME=value) in their environment, and deletes the kernel's directory ($2) with the kit's `remove_trees`.
trap '' HUP INT TERM
while read -r _; do :; done
for _ in 1 2 3 4 5; do
  found=$(grep -lsazxF -e "$1" /proc/[0-9]*/environ)
  [ -n "$found" ] || break
  for place in $found; do
    place=${place#/proc/}
    kill -KILL "${place%/environ}"
  done
done
remove_trees "$2"
