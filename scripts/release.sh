#!/usr/bin/env bash
# Freeze the C ABI of a release, commit it, and tag the commit. From then on the tests compare the library with it.
#
#   scripts/release.sh VERSION             a signed tag
#   scripts/release.sh VERSION --unsigned  for tests of this script
#
# VERSION must equal that of include/robocache/base.h, CHANGELOG.md must have a section for it, and
# no file may differ from the last commit. The tag is vVERSION. Nothing is pushed. docs/release.md
# has the steps before and after.
set -euo pipefail
cd "$(dirname "$0")/.."

stop() {
  echo "scripts/release.sh: $1" >&2
  exit 1
}

version=${1:-}
sign=--sign
if [[ ${2:-} == --unsigned ]]; then sign=--annotate; fi
if [[ ! $version =~ ^[0-9]+\.[0-9]+\.[0-9]+$ ]]; then
  stop "\"$version\" is not a version such as 0.1.0. Usage: scripts/release.sh VERSION [--unsigned]"
fi
header=$(sed -n 's/^#define RBC_VERSION_[A-Z]* //p' include/robocache/base.h | paste -sd.)
if [[ $header != "$version" ]]; then
  stop "include/robocache/base.h has version $header, expected $version"
fi
if ! grep -q "^## $version" CHANGELOG.md; then
  stop "CHANGELOG.md has no section \"## $version\""
fi
if [[ $(git status --porcelain) ]]; then
  stop "these files differ from the last commit; commit them first:
$(git status --porcelain)"
fi
if git rev-parse --quiet --verify "refs/tags/v$version" >/dev/null; then
  stop "the tag v$version exists"
fi

python3 scripts/abi_release.py freeze "$version"
git add "tests/abi/released/$version"
git commit --quiet --message "release: freeze the C ABI of $version

tests/abi/released/$version has the headers, the layouts and the exported symbols
that every later library of this ABI version must keep."
git tag "$sign" --message "RoboCache $version" "v$version"
echo "v$version: $(git rev-parse --short HEAD). Next: docs/release.md"
