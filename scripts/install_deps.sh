#!/usr/bin/env bash
# Install the Debian packages that are missing; does nothing, and needs no network, if none is.
# Usage: install_deps.sh build|packages|test|aarch64|bench|docs|format|fuzz|lint|lint-quick
set -euo pipefail

packages=(g++ cmake ninja-build ccache pkg-config libhwy-dev libxxhash-dev python3 python3-dev python3-venv)
case ${1:-build} in
  build) ;;
  packages) packages+=(default-jdk-headless mono-mcs) ;;
  test)
    packages+=(doctest-dev default-jdk-headless junit5 mono-mcs)
    packages+=(clang libclang-rt-dev) # for the sanitizers
    packages+=(chromium)              # renders reports in a browser
    ;;
  aarch64) packages+=(doctest-dev g++-aarch64-linux-gnu qemu-user-static) ;;
  bench) packages+=(libbenchmark-dev) ;;
  docs) packages+=(doxygen) ;;
  format) packages=(git clang-format) ;;
  fuzz) packages+=(clang libclang-rt-dev llvm xxd) ;;
  lint) packages+=(clang-tidy cppcheck shellcheck) ;;
  lint-quick) packages+=(cppcheck shellcheck) ;;
  *)
    echo "install_deps.sh: unknown group '$1'" >&2
    exit 2
    ;;
esac

if ! command -v apt-get >/dev/null || ! command -v dpkg-query >/dev/null; then
  echo "No apt found: install the equivalents of these packages: ${packages[*]}" >&2
  exit 0
fi

installed() {  # PACKAGE
  local status
  # shellcheck disable=SC2016 # a dpkg format, not a shell variable
  status=$(dpkg-query --show --showformat='${db:Status-Status}' "$1" 2>/dev/null || true)
  [[ $status == installed ]]
}

sudo=()
if ((EUID != 0)); then sudo=(sudo); fi

install() {  # PACKAGE...
  echo "Installing Debian packages: $*"
  if ((EUID != 0)) && ! command -v sudo >/dev/null; then
    echo "Root is needed: run 'apt-get install $*' as root, or install sudo" >&2
    exit 1
  fi
  "${sudo[@]}" apt-get update -q
  "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends "$@"
}

missing=()
for package in "${packages[@]}"; do
  installed "$package" || missing+=("$package")
done
if ((${#missing[@]} > 0)); then install "${missing[@]}"; fi

# The check `includes` of scripts/lint.sh needs clang-tidy 17 or later. Debian 12's default is 14,
# and it has others.
if [[ ${1:-} == lint ]]; then
  for package in clang-tidy-{22,21,20,19,18,17}; do
    if installed "$package"; then exit 0; fi
  done
  for package in clang-tidy-{22,21,20,19,18,17}; do
    if apt-cache show "$package" >/dev/null 2>&1; then
      install "$package"
      exit 0
    fi
  done
  echo "This release has no clang-tidy 17 or later: scripts/lint.sh skips \"includes\"" >&2
fi
