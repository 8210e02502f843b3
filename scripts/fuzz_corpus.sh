#!/usr/bin/env bash
# The corpus of the tree is one file with an input a line, in hexadecimal, the shortest first.
#
#   fuzz_corpus.sh unpack CORPUS FOLDER          into files, as libFuzzer reads them
#   fuzz_corpus.sh merge FUZZER FOLDER CORPUS    those of a campaign that cover the same as all
set -euo pipefail

case ${1:-} in
  unpack)
    mkdir -p "$3"
    number=0
    while read -r line; do
      xxd -r -p <<<"$line" >"$3/corpus-$number"
      number=$((number + 1))
    done <"$2"
    ;;
  merge)
    merged=$(mktemp -d)
    trap 'rm -rf "$merged"' EXIT
    "$2" -merge=1 -max_len=600 "$merged" "$3"
    # As much as a tree should carry.
    for input in "$merged"/*; do
      xxd -p "$input" | tr -d '\n'
      echo
    done | awk '{ print length, $0 }' | sort -n | awk '(total += $1) < 250000 { print $2 }' >"$4"
    wc -l "$4"
    ;;
  *)
    sed -n 's/^# \?//p' "$0" >&2
    exit 2
    ;;
esac
