# shellcheck shell=sh
# Functions to remove trees in which code may have mounted other directories of the machine, even `/`, which it can do as root.

# Calls $2 with everything that is mounted at the directory $1 or below it, outermost first; with $3, only with what is `shared`.
each_mount() {
  [ ! -r /proc/self/mountinfo ] || while read -r _ _ _ _ place _ fields; do
    fields=" $fields"
    case ${3:-}${fields%% - *} in shared*" shared:"*) ;; shared*) continue ;; esac
    # A space, for example, is \040 there; `%b` reads up to three digits after a zero.
    case $place in *\\*) place=$(printf '%b.' "$(printf '%s' "$place" | sed 's/\\/\\0/g')") && place=${place%.} ;; esac
    case $place in "$1" | "$1"/*) "$2" "$place" ;; esac
  done </proc/self/mountinfo
}

# Detaches all of that; fails if something is left. A shared mount takes what is unmounted below it away from its peers too: with a
# copy of `/`, that would be the machine's own `/home` or `/proc`. So all become private first, and nothing is detached if one cannot,
# as one that another mount hides.
detached() {
  # The table has no links in its paths. The dot keeps line ends.
  above=$(cd -P -- "${1%/*}/" 2>/dev/null && pwd -P && echo .) || return 1
  above=${above%?.}
  set -- "${above%/}/${1##*/}"
  each_mount "$1" make_private shared
  [ -z "$(each_mount "$1" echo shared)" ] || return 1
  each_mount "$1" detach
  [ -z "$(each_mount "$1" echo)" ]
}
make_private() { mount --make-private -- "$1" 2>/dev/null; }
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
