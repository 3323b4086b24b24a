# shellcheck shell=sh
#
# Runs the carrier of calls ($2) with its interpreter ($1) and the other arguments. -I -S prevents imports from the work
# directory.
python=$1 carrier=$2
shift 2
exec "$python" -I -S -X utf8 -c "$carrier" "$@"
