# shellcheck shell=sh
# shellcheck disable=SC2086 # lists of numbers
# Kills processes in a container without a supervisor: either all those with a mark in their environment ($1 is NAME=value), with
# their sessions and descendants, or, if $1 is empty, all except those that the other arguments name. Stops them first, so that
# none of them can start another one meanwhile.
mark=$1
shift
spared=" 1 $$ $* "
alive=
marked() {
  while IFS= read -r entry || [ -n "$entry" ]; do
    case $entry in *"$mark"*) return 0 ;; esac
    entry=
  done 2>/dev/null <"/proc/$1/environ"
  return 1
}
look() {
  alive=' ' table='' again=yes
  for place in /proc/[0-9]*; do
    pid=${place#/proc/}
    case $spared in *" $pid "*) continue ;; esac
    { IFS= read -r stat <"$place/stat"; } 2>/dev/null || continue
    set -- ${stat##*) }
    [ "$1" = Z ] && continue
    if [ -z "$mark" ] || marked "$pid"; then alive="$alive$pid "; else table="$table$pid:$2:$4 "; fi
  done
  while [ -n "$again" ]; do
    again=
    for row in $table; do
      pid=${row%%:*} rest=${row#*:}
      case $alive in *" $pid "*) continue ;; esac
      case $alive in *" ${rest%:*} "* | *" ${rest#*:} "*) alive="$alive$pid " again=yes ;; esac
    done
  done
}
stopped=' '
round=0
while [ "$round" -lt 200 ]; do
  round=$((round + 1))
  look
  [ "$alive" = ' ' ] && exit 0
  fresh=
  for pid in $alive; do
    case $stopped in *" $pid "*) ;; *) fresh="$fresh $pid" stopped="$stopped$pid " ;; esac
  done
  if [ -n "$fresh" ]; then
    kill -STOP $fresh 2>/dev/null
  else
    kill -KILL $alive 2>/dev/null
    stopped=' '
  fi
done
exit 1
