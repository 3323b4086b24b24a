/**
 * Shell: what runs on the remote host for each block and each request for a file. The first line of its standard input is
 * a call of one of these functions, the rest is content. Both outputs carry a mark where they begin and where they end,
 * so that neither what a login shell prints nor what a process in the background goes on printing gets in between; the
 * last mark says how it ended.
 *
 * Variables: `nonce`, of the marks; `id`, of the session; `d`, its directory; `workspace`; `setsid` and `shell`, programs.
 */
export const runProgram = `
say() {
  printf '\\036fenced-%s:%s\\n' "$nonce" "$1"
  printf '\\036fenced-%s:%s\\n' "$nonce" "$1" >&2
}

refuse() {
  say "refused $(printf %s "$1" | tr '\\n' ' ')"
  exit 0
}

refused_by_system() {
  case $1 in
  *'File name too long'*) refuse ENAMETOOLONG ;;
  *'Not a directory'*) refuse ENOTDIR ;;
  *) refuse "EACCES $1" ;;
  esac
}

# To the directory in which a path of the workspace lies; the path's last part is then the name.
walk() {
  cd -P "$workspace" 2>/dev/null || refuse GONE
  root=$(pwd -P)
  [ "$root" != / ] || root=
  name=$1
  while :; do
    case $name in */*) ;; *) break ;; esac
    step "\${name%%/*}"
    name=\${name#*/}
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
  case $(pwd -P)/ in "$root"/*) ;; *) refuse ELOOP ;; esac
}

# A link as the name becomes what it leads to.
follow() {
  [ -L "./$name" ] || return 0
  place=$(readlink -f -- "./$name")
  [ -e "$place" ] || refuse ELOOP
  case $place in "$root"/*) ;; *) refuse ELOOP ;; esac
  cd "\${place%/*}/" || refuse ENOENT
  name=\${place##*/}
}

a_file() {
  [ ! -d "./$name" ] || refuse EISDIR
  [ ! -e "./$name" ] || [ -f "./$name" ] || refuse ENXIO
}

put() {
  making=yes
  walk "$1"
  follow
  a_file
  problem=$({ cat >"./$name"; } 2>&1) || refused_by_system "$problem"
}

content() {
  walk "$1"
  follow
  [ -e "./$name" ] || refuse ENOENT
  a_file
  cat "./$name"
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
    find . -type f -printf '%s %P\\0' 2>/dev/null
  else
    find . -type f -exec "$shell" -c 'for file; do printf "%s %s\\0" "$(stat -c %s "$file")" "\${file#./}"; done' sh {} +
  fi
  return 0
}

# block NUMBER keep|remove FILE INPUT WORDS...: what follows on standard input is the source. A function named environment
# sets variables, in a shell of the program's own, so that none of them can mislead this one.
block() {
  number=$1 after=$2 file=$3 input=$4
  shift 4
  printf '%s\\n' "$$" >"$d/blocks/$number" || exit 1
  [ ! -e "$d/killed/$number" ] || exit 1
  put "$file"
  cd "$workspace" || refuse GONE
  # A shell says there that a program was killed.
  exec 3>&2 2>/dev/null
  (
    exec 2>&3 3>&-
    # A variable of the block may have any name, "id" and "file" too: what is needed stands in the parameters.
    # A session of its own: what a program sends to its group does not reach this one.
    set -- "$id.$number." "$setsid" "$shell" -c 'printf "%s\\n" "$$" >>"$0"; exec "$@"' "$d/blocks/$number" "$@" "$workspace/$file"
    environment
    export FENCED_BLOCK="$1"
    shift
    exec "$@"
  ) <"$input"
  code=$?
  exec 2>&3 3>&-
  rm -f "$d/input/$number"
  [ "$after" = keep ] || rm -rf "$workspace/$file"
  return "$code"
}

# input NUMBER: what follows is what a block will read.
input() {
  cat >"$d/input/$1" || refuse "EACCES the input cannot be stored"
}

making=
say begin
IFS= read -r line || exit 1
eval "$(printf %b "$line")"
say "exit $?"
`;
