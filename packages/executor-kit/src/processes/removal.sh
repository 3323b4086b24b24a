# shellcheck shell=sh
# Functions to remove trees in which code may have mounted other directories of the machine, even `/`, which it can do as root.

# Calls $2 with everything that is mounted at the directory $1 or below it.
each_mount() {
  [ ! -r /proc/self/mountinfo ] || while read -r _ _ _ _ place _; do
    # A space, for example, is \040 there; `%b` reads up to three digits after a zero.
    case $place in *\\*) place=$(printf '%b.' "$(printf '%s' "$place" | sed 's/\\/\\0/g')") && place=${place%.} ;; esac
    case $place in "$1" | "$1"/*) "$2" "$place" ;; esac
  done </proc/self/mountinfo
}

# Detaches all of that; fails if something is left.
detached() {
  each_mount "$1" detach
  [ -z "$(each_mount "$1" echo)" ]
}
detach() { umount -l -- "$1" 2>/dev/null; }

# Removes files and directories, also those that code has made unwritable. Leaves those below which something stays mounted.
remove_trees() {
  for tree in "$@"; do
    detached "$tree" || continue
    rm -rf -- "$tree" 2>/dev/null || {
      chmod -R u+rwx -- "$tree"
      rm -rf -- "$tree"
    }
  done
}
