#!/usr/bin/env bash
# Run the JUnit tests, and leave their report as JUNIT_DIR/java.xml.
# Usage: run_tests.sh JUNIT_DIR JAVA [JVM_OPTION...]
set -euo pipefail

junit_dir=$1
shift
reports=$(mktemp -d)
trap 'rm -rf "$reports"' EXIT

status=0
"$@" org.junit.platform.console.ConsoleLauncher --disable-banner --details=tree \
  --disable-ansi-colors --select-package=io.robocache --reports-dir="$reports" || status=$?
mkdir -p "$junit_dir"
mv "$reports/TEST-junit-jupiter.xml" "$junit_dir/java.xml"
exit "$status"
