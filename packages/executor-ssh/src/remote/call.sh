# shellcheck shell=sh disable=SC2015
#
# Runs one block on the remote host, or answers one request for a file. The program and then content arrive on standard
# input. Content arrives in frames: a line with the number of bytes, then the bytes; a line with 0 ends it. Only complete
# content counts: a broken connection leaves neither half a program nor half a file.
#
# Both outputs start and end with a mark, which separates them from what a login shell prints and from what a background
# process keeps printing. The last mark contains the exit code.
#
# The work directory is hostile: code may swap its entries at any time. So a path is walked step by step, and each step
# is checked with PWD, which `cd -P` sets; from there on, names have a single part.

mark() {
  printf '\036fenced-%s:%s\n' "$nonce" "$1"
  printf '\036fenced-%s:%s\n' "$nonce" "$1" >&2
}

# refuse CODE [SENTENCE]
refuse() {
  mark "refused $(printf %s "$1" | tr '\n' ' ')"
  exit 0
}

refused_by_system() {
  case $1 in
  *'File name too long'*) refuse ENAMETOOLONG ;;
  *'Not a directory'*) refuse ENOTDIR ;;
  *'No space left on device'* | *'Disk quota exceeded'*) refuse ENOSPC ;;
  *) refuse "EACCES $1" ;;
  esac
}

# Changes to the work directory, unless it was replaced.
enter_workspace() {
  cd -P "$workspace" 2>/dev/null && [ "$PWD" = "$workspace" ]
}

# Changes to the directory that contains the path $1, and sets `name` to its last part.
walk() {
  enter_workspace || refuse GONE
  root=${workspace%/}
  name=$1
  while :; do
    case $name in */*) ;; *) break ;; esac
    step "${name%%/*}"
    name=${name#*/}
  done
}

step() {
  if [ -d "./$1" ]; then
    :
  elif [ -L "./$1" ]; then
    refuse ELOOP
  elif [ -e "./$1" ]; then
    [ -z "$making" ] || refuse EEXIST
    refuse ENOTDIR
  elif [ -n "$making" ]; then
    problem=$(mkdir "./$1" 2>&1) || [ -d "./$1" ] || refused_by_system "$problem"
  else
    refuse ENOENT
  fi
  cd -P "./$1" 2>/dev/null || refuse "EACCES cannot change to the directory $1"
  assert_inside
}

assert_inside() {
  case $PWD/ in "$root"/*) ;; *) refuse ELOOP ;; esac
}

# If the name is a link, follows it.
follow() {
  [ -L "./$name" ] || return 0
  place=$(readlink -f -- "./$name")
  case $place in "$root"/*) ;; *) refuse ELOOP ;; esac
  cd -P "${place%/*}/" 2>/dev/null || refuse ELOOP
  assert_inside
  name=${place##*/}
  [ -e "./$name" ] && [ ! -L "./$name" ] || refuse ELOOP
}

assert_file() {
  [ ! -d "./$name" ] || refuse EISDIR
  [ ! -e "./$name" ] || [ -f "./$name" ] || refuse ENXIO
}

# Copies frames to standard output. Fails if the last one is missing.
frames() {
  while IFS= read -r size; do
    [ "$size" != 0 ] || return 0
    dd bs="$size" count=1 iflag=fullblock status=none || return 1
  done
  return 1
}

# Ends a call whose content could not be stored: $1 is the reason, empty if the connection broke.
content_lost() {
  [ -n "$1" ] || exit 1
  refused_by_system "$1"
}

# Stores frames in a new file at the top of the work directory, where clean-up finds the remains of a call. Runs in a
# subshell; prints the reason if it fails.
receive() {
  enter_workspace || {
    echo "the work directory is gone"
    return 1
  }
  # The name is secret, and the file must not exist yet.
  set -C
  { frames >"./$part"; } 2>&1 || {
    rm -f "./$part"
    return 1
  }
}

put() {
  making=yes
  walk "$1"
  follow
  assert_file
  problem=$(receive) || content_lost "$problem"
  [ ! -e "./$name" ] || chmod "$(stat -c %a "./$name")" "$workspace/$part" 2>/dev/null
  problem=$(mv -fT "$workspace/$part" "./$name" 2>&1) || {
    rm -f "$workspace/$part"
    refused_by_system "$problem"
  }
}

# content FILE START
content() {
  walk "$1"
  follow
  [ -e "./$name" ] || refuse ENOENT
  assert_file
  send "$2" <"./$name"
}

# Prints its type, size and modification time in seconds.
status() {
  walk "$1"
  follow
  [ -e "./$name" ] || refuse ENOENT
  if [ -d "./$name" ]; then
    stat -c 'directory 0 %Y' "./$name"
  else
    [ -f "./$name" ] || refuse ENXIO
    stat -c 'file %s %Y' "./$name"
  fi
}

# The opened file may differ from the one that was checked. The dot keeps line ends at the end of a name.
send() {
  case $(
    readlink /proc/self/fd/0
    echo .
  ) in
  "${PWD%/}/$name"*) ;;
  *) refuse ELOOP ;;
  esac
  [ -f /proc/self/fd/0 ] || refuse ENXIO
  if [ "$1" = 0 ]; then cat; else tail -c "+$(($1 + 1))"; fi
}

remove() {
  walk "$1"
  [ -e "./$name" ] || [ -L "./$name" ] || refuse ENOENT
  problem=$(rm -rf "./$name" 2>&1) || refused_by_system "$problem"
}

# Prints sizes and paths, each followed by a NUL character.
list() {
  walk "$1/"
  if find . -prune -printf '' 2>/dev/null; then
    find . -type f -printf '%s %P\0' 2>/dev/null
  else
    # shellcheck disable=SC2016 # The inner shell's own variables.
    find . -type f -exec sh -c 'for file; do printf "%s %s\0" "$(stat -c %s "$file")" "${file#./}"; done' sh {} +
  fi
  return 0
}

# Stores the input in a file that no longer has a name, open for reading as descriptor 4.
store_input() {
  set -C
  command exec 3>"$directory/$part" || refuse "EACCES the input could not be stored"
  set +C
  command exec 4<"/proc/$$/fd/3" || refuse "EACCES the input could not be stored"
  rm -f "$directory/$part"
  problem=$(frames 2>&1 >&3) || content_lost "$problem"
  exec 3>&-
}

# Passes frames on to the program as they arrive, over a pipe that it opens, and reports when it stops reading.
pass_input_on() {
  mkfifo -m 600 "$directory/$part" 2>/dev/null || refuse "EACCES the input could not be passed on"
  exec 3<&0
  {
    frames 2>/dev/null >"$directory/$part" || printf '\036fenced-%s:unread\n' "$nonce" >&2
  } <&3 3<&- &
  feeder=$!
  exec 3<&-
}

# block CALL keep|remove FILE input|live|none COUNT WORDS... VARIABLES...
# COUNT is the number of words in the command; variables are NAME=VALUE. The source arrives as content, then the input, which
# a program reads from the start if it is "live". A program without a source has no FILE, and nothing is removed.
block() {
  call=$1 after=$2 file=$3 input=$4 count=$5
  shift 5
  [ -z "$file" ] || put "$file"
  exec 4</dev/null
  [ "$input" != input ] || store_input
  enter_workspace || refuse GONE
  # In its own session: a signal that a program sends to its group does not reach this shell. The leader is reported.
  # shellcheck disable=SC2016 # The inner shell's own variables.
  set -- "$@" -- "$setsid" "$shell" -c '
    printf "\036fenced-%s:begin %s\n" "$0" "$$"
    printf "\036fenced-%s:begin\n" "$0" >&2
    exec "$@"' "$nonce"
  # Moves the command's words to the end: variables, --, the starter, the command, its file.
  while [ "$count" -gt 0 ]; do
    set -- "$@" "$1"
    shift
    count=$((count - 1))
  done
  [ -z "$file" ] || set -- "$@" "$workspace/$file"
  [ ! -e "$directory/killed/$call" ] || exit 1
  feeder=
  [ "$input" != live ] || pass_input_on
  # A shell reports on standard error that a program was killed.
  exec 5>&2 2>/dev/null
  (
    [ "$input" != live ] || exec 4<"$directory/$part"
    [ "$input" != live ] || rm -f "$directory/$part"
    exec <&4 2>&5 4<&- 5>&-
    # A block's variable may have any name, even "file": only parameters are used here.
    while [ "$1" != -- ]; do
      # shellcheck disable=SC2163 # It is a name and a value.
      export "$1"
      shift
    done
    shift
    exec "$@"
  )
  code=$?
  # The rest of the input would wait forever for a reader.
  [ -z "$feeder" ] || kill "$feeder"
  exec 2>&5 5>&-
  [ "$after" = keep ] || [ -z "$file" ] || rm -rf "./$file"
  return "$code"
}

# main NONCE DIRECTORY WORKSPACE SETSID SHELL PART VERB WORDS...
main() {
  nonce=$1 directory=$2 workspace=$3 setsid=$4 shell=$5 part=$6 verb=$7
  shift 7
  making=
  [ "$verb" = block ] || mark begin
  case $verb in
  block) block "$@" ;;
  put) put "$@" ;;
  content) content "$@" ;;
  status) status "$@" ;;
  remove) remove "$@" ;;
  list) list "$@" ;;
  esac
  mark "exit $?"
}

main "$@"
