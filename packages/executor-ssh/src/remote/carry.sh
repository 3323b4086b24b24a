# shellcheck shell=sh
#
# Becomes the carrier of calls ($2) by its interpreter ($1), with the other arguments. -I -S keeps files of the work directory from
# being imported.
python=$1 carrier=$2
shift 2
exec "$python" -I -S -X utf8 -c "$carrier" "$@"
