# shellcheck shell=sh
# Functions to remove trees in which code may have mounted other directories of the machine, even `/`, which it can do as root.

# Calls $2 with everything that is mounted at the directory $1 or below it, outermost first, and with the fields that say with which
# others each shares what is mounted in it; with $3, calls that with everything else.
each_mount() {
  [ ! -r /proc/self/mountinfo ] || while read -r _ _ _ _ place _ fields; do
    fields=" $fields"
    # A space, for example, is \040 there; `%b` reads up to three digits after a zero.
    case $place in *\\*) place=$(printf '%b.' "$(printf '%s' "$place" | sed 's/\\/\\0/g')") && place=${place%.} ;; esac
    case $place in
    "$1" | "$1"/*) "$2" "$place" "${fields%% - *}" ;;
    *) "${3:-:}" "$place" "${fields%% - *}" ;;
    esac
  done </proc/self/mountinfo
}

# Detaches all of that; fails if something is left. A shared mount takes what is unmounted below it away from its peers too: with a
# copy of `/`, that would be the machine's own `/home` or `/proc`. So all become private first, and nothing is detached if one cannot,
# as one that another mount hides, and it has peers elsewhere. Mounts may be stacked on one place: one layer is detached at a time.
detached() {
  # The table has no links in its paths. The dot keeps line ends.
  above=$(cd -P -- "${1%/*}/" 2>/dev/null && pwd -P && echo .) || return 1
  above=${above%?.}
  set -- "${above%/}/${1##*/}"
  left=$(each_mount "$1" mark)
  [ -n "$left" ] || return 0
  for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
    each_mount "$1" make_private
    groups=" $(each_mount "$1" inside outside)"
    for group in $groups; do
      case $group in shared:*) case $groups in *" outside:${group#*:} "*) return 1 ;; esac ;; esac
    done
    each_mount "$1" detach
    before=$left
    left=$(each_mount "$1" mark)
    [ -n "$left" ] || return 0
    [ ${#left} -lt ${#before} ] || return 1
  done
  return 1
}
mark() { printf x; }
# Also those that another mount hides.
make_private() { case $2 in *" shared:"*) mount --make-rprivate -- "$1" 2>/dev/null ;; esac }
inside() { for field in $2; do case $field in shared:*) printf '%s ' "$field" ;; esac; done; }
outside() { for field in $2; do printf 'outside:%s ' "${field#*:}"; done; }
# Code may have put a link in place of what the table names.
detach() {
  [ ! -L "$1" ] && [ "$(cd -P -- "${1%/*}" 2>/dev/null && pwd -P)" = "${1%/*}" ] && umount -l -- "$1" 2>/dev/null
}

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
