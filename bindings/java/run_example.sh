#!/usr/bin/env bash
# Run an example with nothing but the jar, and compare what it prints.
# Usage: run_example.sh JAVA JAR EXAMPLE.java EXPECTED.txt
set -euo pipefail

diff "$4" <("$1" -classpath "$2" "$3")
