# shellcheck shell=sh
# Prints how many processes of this container the kernel has killed for lack of memory; prints nothing if that is unknown.
for file in /sys/fs/cgroup/memory.events /sys/fs/cgroup/memory/memory.oom_control; do
  [ -r "$file" ] || continue
  while read -r name count; do
    [ "$name" = oom_kill ] && printf '%s\n' "$count" && exit 0
  done <"$file"
done
