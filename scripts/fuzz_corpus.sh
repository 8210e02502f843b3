#!/usr/bin/env bash
# Merge a campaign's inputs into the corpus of the tree: the smallest that cover the same, up to a size.
# Usage: fuzz_corpus.sh FUZZER FOUND CORPUS [MOST_BYTES]
set -euo pipefail
fuzzer=$1 found=$2 corpus=$3 most=${4:-200000}

merged=$(mktemp -d)
trap 'rm -rf "$merged"' EXIT
"$fuzzer" -merge=1 -max_len=600 "$merged" "$corpus" "$found"
rm -rf "$corpus"
mkdir -p "$corpus"
# The smallest first: they are as many ways through the code as fit.
total=0
while read -r size name; do
  ((total + size <= most)) || break
  cp "$merged/$name" "$corpus/$name"
  ((total += size)) || true
done < <(find "$merged" -type f -printf '%s %f\n' | sort -n)
echo "$(find "$corpus" -type f | wc -l) inputs of $total bytes"
