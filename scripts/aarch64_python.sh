#!/usr/bin/env bash
# Put Debian's Python for 64-bit ARM, with its headers, NumPy and pytest, into a folder, where QEMU's user
# mode runs it. Nothing of it is installed. Usage: aarch64_python.sh FOLDER
set -euo pipefail

folder=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
version=$(/usr/bin/python3 -c 'import sys; print("%d.%d" % sys.version_info[:2])')
mkdir -p "$work"/{lists,cache/archives,debs}
apt=(apt-get -q -o APT::Architecture=arm64 -o APT::Architectures::=arm64 -o APT::Sandbox::User=root
  -o Dir::State::lists="$work/lists" -o Dir::Cache="$work/cache" -o Dir::State::status=/dev/null)
"${apt[@]}" update
(cd "$work/debs" && "${apt[@]}" download "python$version-minimal" "libpython$version-minimal" \
  "libpython$version-stdlib" "libpython$version-dev" libexpat1 libffi8 zlib1g)

rm -rf "$folder"
mkdir -p "$folder"
cp -a /usr/aarch64-linux-gnu/lib "$folder/lib" # the C and C++ libraries of the cross compiler
for deb in "$work"/debs/*.deb; do
  dpkg-deb --extract "$deb" "$folder"
done
ln -s "python$version" "$folder/usr/bin/python3"
"${PYTHON:-python3}" -m pip install --quiet --disable-pip-version-check --target "$folder/site" \
  --platform manylinux2014_aarch64 --platform manylinux_2_28_aarch64 --python-version "$version" \
  --only-binary=:all: 'numpy>=1.26' 'ml_dtypes>=0.4' 'pytest>=8'
