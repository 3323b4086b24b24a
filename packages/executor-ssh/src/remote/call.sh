# shellcheck shell=sh disable=SC2015
#
# Runs one block on the remote host, or answers one request for a file. The program comes over standard input; so does
# content, in frames: a line with a number of bytes, then the bytes; after the last one a line with 0. Only whole content
# counts: a connection that breaks makes neither half a program nor half a file.
#
# Both outputs carry a mark where they begin and where they end, so that neither what a login shell prints nor what a
# process in the background goes on printing gets in between. The last mark tells how it ended.
#
# The work directory is hostile: code may swap what is in it at any time. So a path is walked step by step, and after
# each step it is checked where that led, which `cd -P` puts into PWD; from there on names have one part.

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
  *) refuse "EACCES $1" ;;
  esac
}

# Into the work directory, unless something else has taken its place.
enter_workspace() {
  cd -P "$workspace" 2>/dev/null && [ "$PWD" = "$workspace" ]
}

# Into the directory in which the path $1 lies; `name` is then its last part.
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
  cd -P "./$1" 2>/dev/null || refuse "EACCES $1 cannot be entered"
  assert_inside
}

assert_inside() {
  case $PWD/ in "$root"/*) ;; *) refuse ELOOP ;; esac
}

# If the name is a link, goes to where it leads.
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

# Copies frames to standard output. It fails if the last one does not come.
frames() {
  while IFS= read -r size; do
    [ "$size" != 0 ] || return 0
    dd bs="$size" count=1 iflag=fullblock status=none || return 1
  done
  return 1
}

# Ends a call whose content could not be stored: $1 says why, or nothing if the connection broke.
content_lost() {
  [ -n "$1" ] || exit 1
  refused_by_system "$1"
}

# Stores frames in a new file at the top of the work directory, where clean-up finds what is left of a call. Runs in a
# subshell; prints why it fails.
receive() {
  enter_workspace || {
    echo "the work directory is gone"
    return 1
  }
  # A name that nobody else knows, and that must not be there yet.
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

# Its type, size and time of change, in seconds.
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

# What was opened may not be what was looked at. A dot keeps line ends at the end of a name.
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

# Sizes and paths, each ended by a NUL character.
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

# Stores the input in a file that has no name any more, open for reading as descriptor 4.
store_input() {
  set -C
  command exec 3>"$directory/$part" || refuse "EACCES the input cannot be stored"
  set +C
  command exec 4<"/proc/$$/fd/3" || refuse "EACCES the input cannot be stored"
  rm -f "$directory/$part"
  problem=$(frames 2>&1 >&3) || content_lost "$problem"
  exec 3>&-
}

# block CALL keep|remove FILE input|none COUNT WORDS... VARIABLES...
# COUNT says how many words the command has; variables are NAME=VALUE. The source comes as content, then the input.
block() {
  call=$1 after=$2 file=$3 input=$4 count=$5
  shift 5
  put "$file"
  exec 4</dev/null
  [ "$input" = none ] || store_input
  enter_workspace || refuse GONE
  # In a session of its own: what a program sends to its group does not reach this one. Its leader is told to the other side.
  # shellcheck disable=SC2016 # The inner shell's own variables.
  set -- "$@" -- "$setsid" "$shell" -c '
    printf "\036fenced-%s:begin %s\n" "$0" "$$"
    printf "\036fenced-%s:begin\n" "$0" >&2
    exec "$@"' "$nonce"
  # The command's words go to the end: variables, --, what starts the command, the command, its file.
  while [ "$count" -gt 0 ]; do
    set -- "$@" "$1"
    shift
    count=$((count - 1))
  done
  set -- "$@" "$workspace/$file"
  [ ! -e "$directory/killed/$call" ] || exit 1
  # A shell says on its standard error that a program was killed.
  exec 5>&2 2>/dev/null
  (
    exec <&4 2>&5 4<&- 5>&-
    # A variable of the block may have any name, "file" too: only parameters are used here.
    while [ "$1" != -- ]; do
      # shellcheck disable=SC2163 # It is a name and a value.
      export "$1"
      shift
    done
    shift
    exec "$@"
  )
  code=$?
  exec 2>&5 5>&-
  [ "$after" = keep ] || rm -rf "./$file"
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
