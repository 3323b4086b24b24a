# shellcheck shell=sh
# Runs where there is no Python: reports its user and the programs that it finds, then waits until its input ends, which means
# that the program that started it has ended. Uses only POSIX shell built-ins. Takes the arguments of supervisor.py.
directory=$1 probe=$3 mounts=$8
shift 8
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
if [ "$mounts" -gt 0 ] && read -r kernel </proc/sys/kernel/random/boot_id; then
  printf 'kernel %s\n' "$kernel"
fi 2>/dev/null
while [ "$mounts" -gt 0 ]; do
  if found=$(stat -L -c '%d:%i' "$1" 2>/dev/null); then
    printf 'mount %s %s\n' "$found" "$1"
  elif [ ! -e "$1" ]; then
    # Below a directory that this user may not enter. The shell itself knows better than a `stat` that lies.
    case $(LC_ALL=C stat -L "$1" 2>&1) in *': Permission denied') printf 'mount ? %s\n' "$1" ;; esac
  fi
  mounts=$((mounts - 1))
  shift
done
for name; do
  place=$(command -v "$name") && printf 'program %s %s\n' "$name" "$place"
done
command -v node >/dev/null 2>&1 && printf 'node %s\n' "$(node --version)"
printf 'end\n'
while read -r _; do :; done
