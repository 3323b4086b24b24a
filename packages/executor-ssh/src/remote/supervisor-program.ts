import { killProgram } from "./kill-program.ts";
import { runProgram } from "./run-program.ts";
import { quoted } from "./shell-words.ts";

/** What a supervisor is made for. */
export interface SupervisorConfig {
  /** Names the session; unique in the world. */
  readonly id: string;
  /** What stands in the marks of outputs. */
  readonly nonce: string;
  /** The work directory; `undefined`: a temporary one. */
  readonly workDir: string | undefined;
  /** What the names of the session's own files in the work directory begin with. */
  readonly filePrefix: string;
  /** Keep the files of blocks without a name. */
  readonly keepFiles: boolean;
  /** The functions' module, and who sets it up. */
  readonly functionsModule: string;
  readonly owner: string;
  /** The file in the functions' package that names its owner. */
  readonly functionsMarker: string;
  /** Programs to look for. */
  readonly programs: readonly string[];
  /** `PATH` to look on; `undefined`: the one that ssh gives. */
  readonly path: string | undefined;
  /** Seconds without a word from this side after which everything is ended. */
  readonly silenceSeconds: number;
}

/**
 * The command for the first session on a connection: a shell that reads its program from its standard input. It contains
 * nothing that a login shell, whichever it is, takes for something else.
 */
export const bootCommand = `exec sh -c 'IFS= read -r program && eval "$(printf %b "$program")"' fenced-supervisor`;

/**
 * The shell program that keeps a session on the remote host: makes its directory, says what there is, ends blocks when
 * told, and ends and deletes everything when its standard input ends, as it does when the connection breaks.
 *
 * It reads words: `beat` (the other side lives), `kill NUMBER`, `reset` (ends all processes). It answers `done WORD`.
 */
export function supervisorProgram(config: SupervisorConfig): string {
  const variables = {
    id: config.id,
    nonce: config.nonce,
    prefix: config.filePrefix,
    keep: config.keepFiles ? "keep" : "",
    module: config.functionsModule,
    owner: config.owner,
    marker: config.functionsMarker,
    given: config.workDir ?? "",
    looked: config.path ?? "",
    silence: String(config.silenceSeconds),
    run_program: runProgram,
  };
  const assignments = Object.entries(variables).map(([name, value]) => `${name}=${quoted(value)}`);
  return [...assignments, `set -- ${config.programs.map(quoted).join(" ")}`, killProgram, body].join("\n");
}

const body = `
trap '' HUP INT TERM PIPE
printf '\\036fenced-%s:hello\\n' "$nonce"

problem() {
  [ -z "$d" ] || rm -rf "$d"
  printf 'problem %s\\n' "$(printf %s "$1" | tr '\\n' ' ')"
  exit 1
}

d= found_path=$PATH
[ "$(uname -s)" = Linux ] && [ -r /proc/self/stat ] || problem "it is no Linux with /proc"
for tool in awk cat env find grep mkdir mktemp readlink rm setsid sleep tr; do
  command -v "$tool" >/dev/null 2>&1 || problem "it has no $tool"
done
setsid=$(command -v setsid) shell=$(command -v sh)
d=$(mktemp -d "\${TMPDIR:-/tmp}/fenced-remote-XXXXXXXX" 2>&1) || {
  said=$d d=
  problem "no temporary directory can be made: $said"
}
case $d in *[!A-Za-z0-9/._-]*) problem "TMPDIR has a name that cannot be used: $d" ;; esac
mkdir "$d/blocks" "$d/killed" "$d/input" "$d/functions" "$d/packages" || problem "$d cannot be written to"

workspace=$d/workspace
case $given in
'') mkdir "$workspace" ;;
'~/'*) workspace=$HOME/\${given#??} ;;
*) workspace=$given ;;
esac
said=$(mkdir -p -- "$workspace" 2>&1) || problem "the work directory cannot be made: $said"
cd -P -- "$workspace" 2>/dev/null && [ -w . ] || problem "the work directory $workspace cannot be used"
workspace=$(pwd -P)

word() {
  printf "'"
  printf %s "$1" | sed "s/'/'\\\\\\\\''/g"
  printf "'"
}

{
  for name in id nonce d workspace setsid shell; do
    eval "value=\\$$name"
    printf '%s=%s\\n' "$name" "$(word "$value")"
  done
  printf %s "$run_program"
} >"$d/run" || problem "$d cannot be written to"

[ -z "$looked" ] || PATH=$looked
printf 'dir %s\\nworkspace %s\\n' "$d" "$workspace"
for name; do
  place=$(command -v "$name" 2>/dev/null) && printf 'program %s %s\\n' "$name" "$place"
done
command -v node >/dev/null 2>&1 && printf 'node %s\\n' "$(node --version 2>/dev/null)"
printf 'ready\\n'
[ -z "$looked" ] || PATH=$found_path

kill_block() {
  : >"$d/killed/$1"
  end "FENCED_BLOCK=$id.$1." "$(cat "$d/blocks/$1" 2>/dev/null)"
  rm -f "$d/input/$1"
  [ -n "$keep" ] || rm -rf "$workspace/$prefix$1."*
}

reset() {
  end "FENCED_BLOCK=$id." "$(cat "$d"/blocks/* 2>/dev/null)"
  rm -f "$d"/blocks/* "$d"/input/*
}

clean_up() {
  cd /
  reset
  end "FENCED_SSH_CALL=$id." ""
  [ -n "$keep" ] || rm -rf "$workspace/$prefix"*
  place=$workspace/node_modules/$module
  if [ "$(cat "$place/$marker" 2>/dev/null)" = "$owner" ]; then
    rm -rf "$place"
    rmdir "$workspace/node_modules" 2>/dev/null
  fi
  rm -rf "$d" 2>/dev/null || {
    chmod -R u+rwx "$d"
    rm -rf "$d"
  } 2>/dev/null
}

# Ends all when the other side is silent, as it is when the network is cut and nobody tells.
watch() {
  # A gentler signal could come before the new process has let go of this trap, and be lost.
  trap 'kill -KILL "$!" 2>/dev/null; exit 0' TERM
  while :; do
    sleep "$silence" &
    wait "$!"
    [ -e "$d/beat" ] || break
    rm -f "$d/beat"
  done
  kill -KILL "$1"
  clean_up
}

: >"$d/beat"
# Until the watch has a trap of its own, it must not ignore the signal that ends it.
trap - TERM
watch "$$" </dev/null >/dev/null 2>&1 &
watch=$!
trap '' TERM
while read -r verb number; do
  case $verb in
  beat) : >"$d/beat" ;;
  kill) { kill_block "$number"; printf 'done kill %s\\n' "$number"; } & ;;
  reset) reset; printf 'done reset\\n' ;;
  esac
done
kill "$watch"
wait
clean_up
`;
