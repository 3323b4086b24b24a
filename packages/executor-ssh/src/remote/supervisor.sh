# shellcheck shell=sh disable=SC2015
#
# Keeps a session on the remote host: creates its directory, reports what is installed, ends blocks on request, and ends
# and deletes everything when its standard input ends, as it does when the connection breaks.
#
# Reads lines from standard input: `beat` (the client is alive), `leader CALL PID` (the leader of a block's session, or a
# supervisor of blocks), `kill CALL`, `reset` (end all blocks). Answers the last two with `done LINE`.
#
# Code runs as the same user and may change every file of the session. So all state is kept in variables, and only the
# names of files carry information: creating or removing a directory neither blocks nor follows a link.

# Ends a family of processes: those with the mark $1 in their environment, the leaders $2 (PID:START, with START empty if
# the process is certainly ours), and all their descendants and members of their sessions. Stops members until none is
# running, then kills them all. A process that has not stopped yet may still be starting another.
end() {
  round=0
  while [ "$round" -lt 200 ]; do
    round=$((round + 1))
    members=$(family "$1" "$2") || continue
    [ -n "$members" ] || return 0
    running=
    for member in $members; do
      case $member in *+) running="$running ${member%+}" ;; esac
    done
    [ "$round" -lt 10 ] || sleep 0.05
    # shellcheck disable=SC2046,SC2086 # Lists of numbers.
    if [ -n "$running" ] && [ "$round" -lt 20 ]; then
      kill -STOP $running 2>/dev/null
    else
      kill -KILL $(printf %s "$members" | tr + ' ') 2>/dev/null
    fi
  done
  return 1
}

# Prints the ids of a family's processes, with a plus sign after those that are not stopped.
family() {
  {
    printf '%s\n' "$2"
    grep -lsF -e "$1" /proc/[0-9]*/environ
    # A process name may contain anything, even brackets and line breaks. grep labels each line with its file.
    LC_ALL=C grep -sH '' /proc/[0-9]*/stat
  } | awk '
    function look(pid, text,   field) {
      if (!sub(/.*[)]/, "", text)) return
      split(text, field, " ")
      # A process whose first thread has ended looks like a zombie, but its other threads run on.
      if ((field[1] == "Z" && field[18] <= 1) || field[1] == "X") return
      running[pid] = field[1] == "T" || field[1] == "t" ? "" : "+"
      parent[pid] = field[2]
      group[pid] = field[3]
      session[pid] = field[4]
      started[pid] = field[20]
    }
    function add(pid) {
      found[pid] = 1
      size++
    }
    function grow(   pid, before) {
      do {
        before = size
        for (pid in parent)
          if (!(pid in found) && ((parent[pid] in found) || (session[pid] in leader) || (group[pid] in leader))) add(pid)
      } while (size != before)
    }
    NR == 1 {
      leaders = $0
      next
    }
    { split($0, part, "/") }
    part[4] == "environ" { marked[part[3]] = 1 }
    part[4] ~ /^stat:/ { stat[part[3]] = stat[part[3]] " " $0 }
    END {
      for (pid in stat) look(pid, stat[pid])
      for (pid in marked) if (pid in parent) add(pid)
      count = split(leaders, list, " ")
      for (i = 1; i <= count; i++) {
        split(list[i], part, ":")
        if (!(part[1] in parent)) leader[part[1]] = 1
        # Another process may have the id by now.
        else if (part[2] == "" || part[2] == started[part[1]]) {
          leader[part[1]] = 1
          if (!(part[1] in found)) add(part[1])
        }
      }
      grow()
      for (pid in found) print pid running[pid]
    }'
}

# Remembers the leader of a call's session, and its start time.
remember() {
  call=$1 pid=$2 stat=
  { IFS= read -r stat <"/proc/$pid/stat"; } 2>/dev/null
  # shellcheck disable=SC2086 # The fields after the name.
  set -- ${stat##*) }
  leaders="$leaders $call:$pid:${20:-ended}"
}

leaders_of() {
  for each in $leaders; do
    case $each in "$1"*) printf '%s ' "${each#*:}" ;; esac
  done
}

kill_call() {
  # Programs of the call that start later check for it.
  mkdir "$directory/killed/$1" 2>/dev/null
  end "FENCED_SSH_CALL=$id.$1." "$(leaders_of "$1:")"
  [ -n "$keep" ] || rm -rf "./$prefix${1#block}."*
}

clean_up() {
  end "FENCED_SSH_CALL=$id." "$(leaders_of '')${watch:+ $watch:}"
  rm -rf "./${prefix}part-"*
  [ -n "$keep" ] || rm -rf "./$prefix"*
  remove_functions
  remove_packages
  cd / || :
  rm -rf "$directory" 2>/dev/null || [ -L "$directory" ] || {
    chmod -R u+rwx "$directory"
    rm -rf "$directory"
  } 2>/dev/null
}

# Removes the JavaScript functions if this session created them. A pipe in place of the marker must not block this.
remove_functions() {
  place=./node_modules/$module
  [ ! -L ./node_modules ] && [ ! -L "$place" ] && [ -f "$place/$marker" ] || return 0
  [ "$(timeout -s KILL 5 head -c 200 "$place/$marker" 2>/dev/null)" = "$owner" ] || return 0
  rm -rf "$place"
  rmdir ./node_modules 2>/dev/null
}

# Ends everything when the client falls silent, as it does when the network is cut without notice.
watch() {
  while FENCED_SSH_CALL="$id.watch." sleep "$silence"; rmdir "$directory/beat" 2>/dev/null; do :; done
  kill -KILL "$1"
  clean_up
}

# Starts the watch, or restarts it so that it knows all leaders: no mark identifies a supervisor of blocks.
start_watch() {
  [ -z "$watch" ] || { kill -KILL "$watch" && wait "$watch"; } 2>/dev/null
  watch "$$" </dev/null >/dev/null 2>&1 &
  watch=$!
}

problem() {
  [ -z "$directory" ] || rm -rf "$directory"
  printf 'problem %s\n' "$(printf %s "$1" | head -c 600 | tr '\n' ' ')"
  exit 1
}

check_host() {
  [ "$(uname -s)" = Linux ] && [ -r /proc/self/stat ] || problem "it does not run Linux, or has no /proc"
  for tool in awk cat chmod dd env find grep head mkdir mktemp mv readlink rm setsid sleep stat timeout tr; do
    command -v "$tool" >/dev/null 2>&1 || problem "the program $tool is missing"
  done
}

make_directories() {
  directory=$(mktemp -d "${TMPDIR:-/tmp}/fenced-remote-XXXXXXXX" 2>&1) || {
    said=$directory directory=
    problem "a temporary directory could not be created: $said"
  }
  case $directory in *[!A-Za-z0-9/._-]*) problem "TMPDIR contains unsupported characters: $directory" ;; esac
  mkdir "$directory/killed" "$directory/beat" "$directory/functions" "$directory/packages" ||
    problem "$directory is not writable"
  # shellcheck disable=SC2088 # No shell has expanded the tilde.
  case $given in
  '') workspace=$directory/workspace ;;
  '~/'*) workspace=$HOME/${given#??} ;;
  *) workspace=$given ;;
  esac
  said=$(mkdir -p -- "$workspace" 2>&1) || problem "the work directory could not be created: $said"
  # This process stays in the directory, so that clean-up does not depend on a path that code can change.
  cd -P -- "$workspace" 2>/dev/null && [ -w . ] || problem "the work directory $workspace cannot be entered or is not writable"
  workspace=$(pwd -P)
}

# Creates the directory in which pip installs a user's packages: Python searches it only if it exists when Python starts, so a block
# could not import what it has just installed.
make_packages() {
  python=$(readlink -f -- "$(PATH=${path:-$PATH} command -v python3)") || return 0
  case ${python##*/} in python[0-9].[0-9]*) ;; *) return 0 ;; esac
  case $HOME in /?*) ;; *) return 0 ;; esac
  packages=$HOME/.local/lib/${python##*/}/site-packages
  place=$packages
  while [ ! -e "$place" ] && [ ! -L "$place" ]; do
    packages_made=x$packages_made
    place=${place%/*}
  done
  mkdir -p -- "$packages" 2>/dev/null
}

# Removes what make_packages has created, unless something was installed there.
remove_packages() {
  while [ -n "$packages_made" ] && rmdir -- "$packages" 2>/dev/null; do
    packages=${packages%/*} packages_made=${packages_made#x}
  done
}

greet() {
  printf 'dir %s\nworkspace %s\n' "$directory" "$workspace"
  # These are absolute paths: a block may have its own PATH.
  printf 'path %s\n' "$(printf %s "$PATH" | tr '\n' ' ')"
  printf 'setsid %s\nshell %s\n' "$(command -v setsid)" "$(command -v sh)"
  (
    [ -z "$path" ] || PATH=$path
    for name; do
      place=$(command -v "$name" 2>/dev/null) && printf 'program %s %s\n' "$name" "$place"
    done
    command -v node >/dev/null 2>&1 && printf 'node %s\n' "$(node --version 2>/dev/null)"
  )
  printf 'ready\n'
}

# main ID NONCE PREFIX KEEP MODULE OWNER MARKER WORK_DIRECTORY PATH SILENCE PROGRAMS...
main() {
  id=$1 nonce=$2 prefix=$3 keep=$4 module=$5 owner=$6 marker=$7 given=$8 path=$9
  shift 9
  silence=$1
  shift
  directory='' leaders='' watch='' packages_made=''
  trap '' HUP INT TERM PIPE
  printf '\036fenced-%s:hello\n' "$nonce"
  check_host
  make_directories
  make_packages
  greet "$@"
  start_watch
  while read -r verb call pid; do
    case $verb in
    beat) mkdir "$directory/beat" 2>/dev/null ;;
    leader)
      remember "$call" "$pid"
      case $call in supervisor*) start_watch ;; esac
      ;;
    kill) { kill_call "$call"; printf 'done kill %s\n' "$call"; } & ;;
    reset)
      end "FENCED_SSH_CALL=$id.block" "$(leaders_of block)"
      leaders=
      printf 'done reset\n'
      ;;
    esac
  done
  clean_up
}

main "$@"
