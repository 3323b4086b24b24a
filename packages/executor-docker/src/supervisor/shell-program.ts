/**
 * What runs in a container whose image has no Python: it says who it is and what there is, then waits for the end of its
 * input, which is the end of the program that started the container. Uses nothing but what a POSIX shell has built in.
 *
 * Variables: `directory`, of the session; `probe`, a file whose content to say and to write back with an `r` after it.
 * Arguments: programs to look for.
 */
export const shellProgram: string = String.raw`
printf 'FENCED0\n'
mkdir -p "$directory/home" 2>/dev/null
printf 'self %s\n' "$$"
while read -r name number rest; do
  case $name in
  Uid:) printf 'uid %s\n' "$number" ;;
  Gid:) printf 'gid %s\n' "$number" ;;
  esac
done </proc/self/status
question=
[ -n "$probe" ] && read -r question <"$probe"
if [ -n "$question" ]; then
  printf 'probe %s\n' "$question"
  printf '%sr' "$question" >"$probe"
fi
for name; do
  place=$(command -v "$name") && printf 'program %s %s\n' "$name" "$place"
done
command -v node >/dev/null 2>&1 && printf 'node %s\n' "$(node --version)"
printf 'end\n'
while read -r line; do :; done
`;

/**
 * Kills, in a container without a supervisor, either all processes that carry a mark in their environment (`$1` is
 * `NAME=value`) with their sessions and descendants, or, if `$1` is empty, all but the processes that the further
 * arguments name. Stops them first, so that none can start another meanwhile.
 */
export const shellKillProgram: string = String.raw`
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
  alive=' ' table= again=yes
  for place in /proc/[0-9]*; do
    pid=${"$"}{place#/proc/}
    case $spared in *" $pid "*) continue ;; esac
    { IFS= read -r stat <"$place/stat"; } 2>/dev/null || continue
    set -- ${"$"}{stat##*) }
    [ "$1" = Z ] && continue
    if [ -z "$mark" ] || marked "$pid"; then alive="$alive$pid "; else table="$table$pid:$2:$4 "; fi
  done
  while [ -n "$again" ]; do
    again=
    for row in $table; do
      pid=${"$"}{row%%:*} rest=${"$"}{row#*:}
      case $alive in *" $pid "*) continue ;; esac
      case $alive in *" ${"$"}{rest%:*} "* | *" ${"$"}{rest#*:} "*) alive="$alive$pid " again=yes ;; esac
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
`;

/** Prints how often the kernel ended a process of this container for want of memory; nothing if it does not tell. */
export const shellOomProgram: string = String.raw`
for file in /sys/fs/cgroup/memory.events /sys/fs/cgroup/memory/memory.oom_control; do
  [ -r "$file" ] || continue
  while read -r name count; do
    [ "$name" = oom_kill ] && printf '%s\n' "$count" && exit 0
  done <"$file"
done
`;
