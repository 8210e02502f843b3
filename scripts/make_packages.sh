#!/usr/bin/env bash
# Build all packages into dist/, with the same librobocache.so: wheel, source distribution, jar,
# nupkg, a tree for C and C++ as a tarball, bills of materials, provenance, and SHA-256 sums.
#
#   PYTHON=python3   has what requirements/packages.txt lists
#   BINDINGS=AUTO    ON: fail if the JDK or Mono is missing, instead of skipping the jar or nupkg
#   ARCHITECTURES    this machine's; "x86_64 aarch64": wheels and tarballs for both, one jar and one nupkg
#                    with the libraries of both; 64-bit ARM is cross compiled
#   CMAKE_ARGS       more for CMake, such as -DROBOCACHE_CUDA=OFF
#   SOURCE_COMMIT, BUILDER_ID    as for provenance.py
#   AARCH64_CUDA     ON or OFF: ROBOCACHE_CUDA for 64-bit ARM; AUTO: depends on CMAKE_ARGS and nvcc
#
# The same sources and tools always give the same bytes: see check_reproducible.sh.
set -euo pipefail
cd "$(dirname "$0")/.."

PYTHON=${PYTHON:-python3}
BINDINGS=${BINDINGS:-AUTO}
machine=$(uname -m)
ARCHITECTURES=${ARCHITECTURES:-$machine}
AARCH64_CUDA=${AARCH64_CUDA:-AUTO}
build=build/packages
stage=$build/stage
version=$(sed -n 's/^#define RBC_VERSION_[A-Z]* //p' include/robocache/base.h | paste -sd.)
# In a source distribution (only this has PKG-INFO) every file has the time of the commit.
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(stat --format=%Y PKG-INFO 2>/dev/null ||
  git log -1 --format=%ct 2>/dev/null || true)}
if [[ -z $SOURCE_DATE_EPOCH ]]; then
  echo "make_packages.sh: the time of the sources is unknown, without git or PKG-INFO:" \
    "set SOURCE_DATE_EPOCH" >&2
  exit 1
fi
export SOURCE_DATE_EPOCH
export CMAKE_GENERATOR=Ninja LC_ALL=C TZ=UTC
umask 022

rm -rf dist "$stage"
mkdir -p dist "$stage" "$build/native" # the libraries of other machines for the jar and the nupkg
rm -rf "$build/native"/*

# Builds a wheel into dist/. $1 is the build folder; the other arguments are for CMake.
make_wheel() {
  local folder=$1 define options=()
  shift
  for define in "$@" ROBOCACHE_PORTABLE=ON ROBOCACHE_JAVA="$BINDINGS" \
    ROBOCACHE_CSHARP="$BINDINGS" ROBOCACHE_NATIVE_FOLDER="$PWD/$build/native"; do
    options+=(-C "cmake.define.$define")
  done
  # Configures for all packages, so that they share compiled objects.
  "$PYTHON" -m build --no-isolation --wheel --outdir "$stage" -C build-dir="$folder" "${options[@]}"
  # Sets the tag to the oldest glibc that it runs on.
  "$PYTHON" -m auditwheel repair --wheel-dir dist "$stage"/*.whl
  rm "$stage"/*.whl
}

# Makes a tree for C and C++ as a tarball, into dist/. $1 is the build folder, $2 the architecture.
make_tree() {
  local tree=robocache-$version-linux-$2 component
  echo "== $tree.tar.gz"
  for component in Runtime Development; do
    cmake --install "$1" --component "$component" --prefix "$stage/$tree"
  done
  tar --directory "$stage" --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 \
    --numeric-owner --create "$tree" | gzip -n9 >"dist/$tree.tar.gz"
}

has_cuda() {
  [[ ${CMAKE_ARGS:-} != *ROBOCACHE_CUDA=OFF* ]] &&
    { command -v nvcc >/dev/null || [[ -x /usr/local/cuda/bin/nvcc ]]; }
}
has_target() { [[ $(cmake --build "$1" --target help) == *"$2"* ]]; }

for architecture in $ARCHITECTURES; do
  if [[ $architecture == "$machine" ]]; then
    continue
  elif [[ $architecture != aarch64 ]]; then
    echo "make_packages.sh: cannot make packages for $architecture on $machine" >&2
    exit 1
  fi
  echo "== 64-bit ARM"
  cross=$build-aarch64
  python=$PWD/build/aarch64/python
  [[ -d $python ]] || scripts/aarch64_python.sh "$python"
  cuda=
  with_cuda=OFF
  if [[ $AARCH64_CUDA == ON ]] || { [[ $AARCH64_CUDA == AUTO ]] && has_cuda; }; then
    cuda=$PWD/build/aarch64/cuda
    with_cuda=ON
    [[ -d $cuda ]] || scripts/aarch64_cuda.sh "$cuda"
  fi
  CMAKE_ARGS="${CMAKE_ARGS:-} -DROBOCACHE_CUDA=$with_cuda" _PYTHON_HOST_PLATFORM=linux-aarch64 \
    make_wheel "$cross" CMAKE_TOOLCHAIN_FILE="$PWD/cmake/aarch64.cmake" \
    ROBOCACHE_AARCH64_PYTHON="$python" ROBOCACHE_AARCH64_CUDA="$cuda"
  make_tree "$cross" aarch64
  for language in java csharp; do
    has_target "$cross" "robocache_$language" || continue
    cmake --build "$cross" --target "robocache_$language"
    mkdir -p "$build/native/$language/aarch64"
    cp "$cross/librobocache.so.1" "$cross/bindings/$language/librobocache_$language.so" \
      "$build/native/$language/aarch64"
  done
done

echo "== Wheel and source distribution"
"$PYTHON" -m build --no-isolation --sdist --outdir "$stage"
mv "$stage"/*.tar.gz dist
make_wheel "$build"

echo "== jar and nupkg"
cmake --build "$build"
if has_target "$build" robocache_java_publish; then
  cmake --build "$build" --target robocache_java_publish
  cp "$build/bindings/java/robocache-$version"*.jar dist
else
  echo "Skipped: the jar (no JDK)"
fi
if has_target "$build" robocache_csharp_package; then
  cmake --build "$build" --target robocache_csharp_package
  "$PYTHON" scripts/make_nupkg.py "$build/bindings/csharp/nupkg" dist
else
  echo "Skipped: the nupkg (no Mono)"
fi
make_tree "$build" "$machine"

echo "== Bills of materials, provenance and sums"
bills() {  # of the build folder $1, with the name $2
  "$PYTHON" scripts/sbom.py "$1" cyclonedx >"dist/$2.cdx.json"
  "$PYTHON" scripts/sbom.py "$1" spdx >"dist/$2.spdx.json"
}
bills "$build" "robocache-$version"
if [[ $ARCHITECTURES == *aarch64* && $machine != aarch64 ]]; then
  bills "$build-aarch64" "robocache-$version-aarch64"
fi
provenance=$(ARCHITECTURES=$ARCHITECTURES BINDINGS=$BINDINGS "$PYTHON" scripts/provenance.py dist)
echo "$provenance" >"dist/robocache-$version.intoto.json"
sums=$(cd dist && sha256sum -- *)
echo "$sums" | tee dist/SHA256SUMS
