#!/usr/bin/env bash
# Put the static CUDA runtime for 64-bit ARM, of the release of this machine's nvcc, into a folder, for
# nvcc to link with. Nothing of it is installed. Usage: aarch64_cuda.sh FOLDER
# requirements/locked/aarch64.txt has the version and the hash, for nvcc of the same release.
set -euo pipefail

folder=$1
nvcc=$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)
release=$("$nvcc" --version | sed -n 's/.*release \([0-9]*\.[0-9]*\),.*/\1/p')
if ((${release%.*} < 13)); then
  echo "aarch64_cuda.sh: nvcc is from CUDA ${release:-?}, expected 13 or later (AARCH64_CUDA=OFF)" >&2
  exit 1
fi
locked=$(dirname "$0")/../requirements/locked/aarch64.txt
wanted=("nvidia-cuda-runtime==$release.*")
if grep -q "^nvidia-cuda-runtime==$release\." "$locked"; then
  wanted=(--require-hashes -r "$locked")
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python=${PYTHON:-python3}
"$python" -m pip download --quiet --disable-pip-version-check --dest "$work" --no-deps \
  --platform manylinux2014_aarch64 --only-binary=:all: "${wanted[@]}"
"$python" -m zipfile --extract "$work"/*.whl "$work/wheel"
rm -rf "$folder"
mkdir -p "$folder"
cp "$work"/wheel/nvidia/cu*/lib/*.a \
  "$work"/wheel/*.dist-info/licenses/License.txt "$folder"
