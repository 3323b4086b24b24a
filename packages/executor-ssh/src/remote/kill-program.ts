/**
 * Shell: ends families of processes on the remote host. A family is whoever carries a mark in its environment, the
 * processes and sessions of given numbers, and all that descends from these. It is stopped member by member until no look
 * finds a new one, and killed then. Variable: `d`, the session's directory.
 */
export const killProgram = `
# end MARK NUMBERS
end() {
  stopped=' ' round=0
  while [ "$round" -lt 200 ]; do
    round=$((round + 1))
    alive=$(family "$1" "$2")
    [ -n "$alive" ] || return 0
    fresh=
    for pid in $alive; do
      case $stopped in *" $pid "*) ;; *) fresh="$fresh $pid" stopped="$stopped$pid " ;; esac
    done
    if [ -n "$fresh" ] && [ "$round" -lt 20 ]; then
      kill -STOP $fresh 2>/dev/null
    else
      kill -KILL $alive 2>/dev/null
      stopped=' '
      [ "$round" -lt 10 ] || sleep 0.05
    fi
  done
  return 1
}

# A number may be a stranger's by now: a process of ours has the mark, or the session's directory in its command.
family() {
  ours=$(
    grep -lsF -e "$1" /proc/[0-9]*/environ
    for pid in $2; do grep -lsF -e "$d/" "/proc/$pid/cmdline"; done
  )
  awk -v ours="$(printf %s "$ours" | tr -cs 0-9 ' ')" -v roots="$(printf %s "$2" | tr '\\n' ' ')" '
    # Behind the name, which may contain anything, brackets and line ends too.
    function look(pid,   file, line, text, field) {
      file = "/proc/" pid "/stat"
      while ((getline line < file) > 0) text = text " " line
      close(file)
      if (!sub(/.*[)]/, "", text)) return
      split(text, field, " ")
      if (field[1] == "Z" || field[1] == "X") return
      parent[pid] = field[2]
      group[pid] = field[3]
      session[pid] = field[4]
    }
    function grow(   pid, before) {
      do {
        before = size
        for (pid in parent)
          if (!(pid in found) && ((parent[pid] in found) || (session[pid] in leader) || (group[pid] in leader))) {
            found[pid] = 1
            size++
          }
      } while (size != before)
    }
    BEGIN {
      for (i = 1; i < ARGC; i++) look(substr(ARGV[i], 7))
      count = split(ours, list, " ")
      for (i = 1; i <= count; i++) if (list[i] in parent) { found[list[i]] = 1; size++ }
      grow()
      count = split(roots, list, " ")
      for (i = 1; i <= count; i++) if ((list[i] in found) || !(list[i] in parent)) leader[list[i]] = 1
      grow()
      for (pid in found) print pid
    }' /proc/[0-9]*
}
`;
