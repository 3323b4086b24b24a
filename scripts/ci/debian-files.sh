#!/usr/bin/env bash
# Fills a directory with a small Debian for an image, as root on Debian, from the packages that are installed here. That
# takes seconds, where debootstrap would download, unpack, and compile everything again.
#
#   scripts/ci/debian-files.sh DIRECTORY PACKAGE...   what debootstrap --variant=minbase installs, and the PACKAGEs
#
# Nothing specific to this machine is copied: only unchanged files that belong to the packages. The packages' own scripts
# create accounts, certificates, and links anew.
set -euo pipefail

database=/var/lib/dpkg

main() {
  local root=$1 names packages log
  names=$(closure "${@:2}")
  mapfile -t packages <<<"$names"
  # On a merged /usr, /bin and others are links to these.
  mkdir -p "$root"/usr/{bin,lib,lib64,sbin}
  files "${packages[@]}" |
    tar --create --directory / --no-recursion --ignore-failed-read --warning=no-failed-read --files-from - |
    tar --extract --directory "$root"
  mkdir -p "$root$database"/{triggers,updates}
  log=$(configure "$root" "${packages[@]}" 2>&1) || {
    echo "$log" >&2
    return 1
  }
}

# Prints the names of essential and required packages, of those given, and of all that they depend on.
closure() {
  # shellcheck disable=SC2016
  dpkg-query --show --showformat='${db:Status-Status}\t${Essential} ${Priority}\t${Package}\t${binary:Package}\t${Provides}\t${Pre-Depends},${Depends}\n' |
    awk -F '\t' -v "wanted=$*" '
      function add(name) {
        if (!(name in added)) queue[++last] = name
        added[name]
      }
      function choose(alternatives,  names, count, i) {
        count = split(alternatives, names, "|")
        for (i = 1; i <= count; i++) {
          if (names[i] in installed) return names[i]
          if (names[i] in provider) return provider[names[i]]
        }
        return alternatives
      }
      $1 == "installed" {
        gsub(/\([^)]*\)|:any| /, "")
        installed[$3] = $4
        depends[$3] = $6
        required = $2 ~ /^yes|required$/
        if (required) add($3)
        count = split($5, names, ",")
        for (i = 1; i <= count; i++) if (required || !(names[i] in provider)) provider[names[i]] = $3
      }
      END {
        count = split(wanted, names, " ")
        for (i = 1; i <= count; i++) add(names[i])
        while (first++ < last) {
          name = queue[first]
          if (!(name in installed)) {
            print name " is not installed." >"/dev/stderr"
            exit 1
          }
          print installed[name]
          count = split(depends[name], groups, ",")
          for (i = 1; i <= count; i++) if (groups[i] != "") add(choose(groups[i]))
        }
      }'
}

# Prints the paths of the packages' unchanged files and their bytecode, of what dpkg knows about the packages, and of the
# one device that scripts need. Some do not exist, such as bytecode of what is not a module.
files() {
  local changed tag package
  # The command fails if there are any.
  changed=$(dpkg --verify "$@" | sed 's|^[^/]*||') || true
  tag=$(/usr/bin/python3 -c 'import sys; print(sys.implementation.cache_tag)')
  {
    for package in "$@"; do cat "$database/info/$package.list"; done |
      grep -vE '^/usr/share/(doc|man|locale)/' | grep -vxF "${changed:-none}" |
      sed -E "p; s|/([^/]+)\.py$|/__pycache__/\1.$tag.pyc|"
    for package in "$@"; do printf '%s\n' "$database/info/$package".[a-z]*; done
    echo /dev/null
  } | sort --unique | sed 's|^/||'
}

# Runs the packages' scripts as if the packages had just been unpacked, except those of Python's modules, which only make
# the bytecode that is there already. They need the accounts that base-passwd's script would make.
configure() {
  local root=$1 file
  dpkg-query --status "${@:2}" |
    sed -E '/^Package: python3(-.*|\.[0-9]+)$/,/^$/! s/^Status: .*/Status: install ok unpacked/' >"$root$database/status"
  for file in passwd group; do cp "$root/usr/share/base-passwd/$file.master" "$root/etc/$file"; done
  env --ignore-environment PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive \
    chroot "$root" dpkg --configure --pending
}

main "$@"
