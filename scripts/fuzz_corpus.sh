#!/usr/bin/env bash
# The corpus of libFuzzer: a folder below build, with a file for each input. It grows with each campaign.
#
#   fuzz_corpus.sh seed REGRESSIONS FOLDER    add the inputs that a campaign starts from
#   fuzz_corpus.sh merge FUZZER FOLDER        delete inputs that reach no line that others do not reach
#
# The seeds are the regressions and every input of one byte: the first byte chooses the kind of call.
set -euo pipefail

case ${1:-} in
  seed)
    mkdir -p "$3"
    { printf '%02x\n' {0..255}; sed -e '/^#/d' -e '/^$/d' "$2"; } |
      while read -r input; do
        xxd -r -p <<<"$input" >"$3/seed-$input"
      done
    ;;
  merge)
    merged=$3.merged
    rm -rf "$merged"
    mkdir "$merged"
    "$2" -merge=1 -max_len=600 "$merged" "$3"
    rm -rf "$3"
    mv "$merged" "$3"
    ;;
  *)
    sed -n 's/^# \?//p' "$0" >&2
    exit 2
    ;;
esac
