# shellcheck shell=sh
# Waits for the end of its input, which is the end of the program that started it, and becomes the command ($@), which gets the
# last line of that input as its last argument.
trap '' HUP INT TERM
while read -r line; do phase=$line; done
exec "$@" "$phase"
