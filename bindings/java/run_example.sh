#!/usr/bin/env bash
# Run an example with only the jar, and compare its output.
# Usage: run_example.sh JAVA JAR EXAMPLE.java EXPECTED.txt
set -euo pipefail

diff "$4" <("$1" -classpath "$2" "$3")
