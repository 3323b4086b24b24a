# shellcheck shell=sh
# Waits until its input ends, which means that the program that started it has ended. Then becomes the command ($@), with the last
# line of the input as its last argument.
trap '' HUP INT TERM
while read -r line; do phase=$line; done
exec "$@" "$phase"
