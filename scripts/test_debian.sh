#!/usr/bin/env bash
# Run a command in a fresh clone of this repository on another release of Debian. Needs root and debootstrap.
#
#   scripts/test_debian.sh RELEASE [COMMAND...]    (default: make test), such as
#   scripts/test_debian.sh trixie make test-compilers COMPILERS="gcc-14 gcc-15"
#
# The release is stored in build/debian/RELEASE and is downloaded once; the clone has the committed
# files, and is made each time. Remove build/debian to start over.
#
#   MIRROR=url   where debootstrap downloads from (default: debootstrap's)
set -euo pipefail
cd "$(dirname "$0")/.."

release=${1:?test_debian.sh: name a release of Debian, such as trixie}
shift
if [[ ! $release =~ ^[a-z][a-z0-9-]*$ ]]; then
  echo "test_debian.sh: \"$release\": expected a release of Debian, such as trixie" >&2
  exit 2
fi
if ((EUID != 0)); then
  echo "test_debian.sh: needs root, for debootstrap and chroot: run it with sudo" >&2
  exit 1
fi
if ! command -v debootstrap >/dev/null; then
  echo "test_debian.sh: debootstrap is missing: apt-get install debootstrap" >&2
  exit 1
fi

root=$PWD/build/debian/$release
if [[ ! -e $root/.complete ]]; then
  rm -rf "$root"
  mkdir -p "$root"
  debootstrap --variant=minbase --include=ca-certificates,git,make "$release" "$root" ${MIRROR:+"$MIRROR"}
  touch "$root/.complete"
fi

# The network settings, and this machine's settings of pip and certificates.
cp -L /etc/resolv.conf /etc/hosts "$root/etc/"
if [[ -e /etc/pip.conf ]]; then cp -L /etc/pip.conf "$root/etc/"; fi
cp -L /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/ca-certificates.crt"

# Not below /root, because some tests start processes of other users, which cannot read it.
clone=/srv/robocache
rm -rf "$root$clone"
git clone -q --no-hardlinks "$PWD" "$root$clone"

if (($# == 0)); then set -- make test; fi
# The mounts are in a separate namespace, so that they end with the command, even if it is killed.
# shellcheck disable=SC2016 # expanded by the shells inside
exec unshare --mount --propagation private bash -euc '
  root=$1 clone=$2
  shift 2
  for folder in proc sys dev; do mount --rbind "/$folder" "$root/$folder"; done
  exec chroot "$root" /usr/bin/env HOME=/root LANG=C.UTF-8 PATH=/usr/sbin:/usr/bin:/sbin:/bin \
    bash -c '\''cd "$0" && exec "$@"'\'' "$clone" "$@"' bash "$root" "$clone" "$@"
