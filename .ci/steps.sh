# shellcheck shell=bash
# Steps of a script, with their times: `source .ci/steps.sh`.
#
#   step NAME COMMAND...     runs a command; the script ends if it fails
#   start NAME COMMAND...    runs one in the background; its output is kept
#   finish NAME              waits for it, prints its output; the script ends if it fails
#
# At the end of the script, however it ends, a table of all steps follows: seconds, seconds of CPU
# time, and the steps that failed or did not finish. CPU time shows what a step costs on a machine
# that does other work, too.

set -euo pipefail

steps_log=$(mktemp -d)
steps_begin=$(date +%s%N)
step_names=()
declare -A step_pid=()

steps_seconds() {  # since a time in nanoseconds
  local ns=$(($(date +%s%N) - $1))
  printf '%d.%d' $((ns / 1000000000)) $((ns / 100000000 % 10))
}

steps_run() {  # NAME COMMAND...: records when it began, and its seconds and status when it ends
  local name=$1 begin status user system TIMEFORMAT='%1U %1S'
  shift
  begin=$(date +%s%N)
  set +e # not `|| status=$?`: functions would then continue after a command that fails
  ( # a shell that has no other children: those in the background count as separate steps
    time {
      (
        set -e
        "$@"
      ) 2>&3 3>&-
    }
  ) 3>&2 2>"$steps_log/$name.cpu"
  status=$?
  set -e
  read -r user system <"$steps_log/$name.cpu"
  echo "$(steps_seconds "$begin") $((10#${user/./} + 10#${system/./})) $status" >"$steps_log/$name.result"
  return "$status"
}

steps_check_name() {
  if [[ ! $1 =~ ^[A-Za-z0-9._-]+$ || -e $steps_log/$1.begun ]]; then
    echo "steps.sh: \"$1\": expected a name of letters, digits, '.', '_' and '-', once" >&2
    exit 2
  fi
  : >"$steps_log/$1.begun"
  step_names+=("$1")
}

step() {
  steps_check_name "$1"
  echo "== $1"
  steps_run "$@"
  echo "== $1: $(cut -d' ' -f1 "$steps_log/$1.result") s"
}

start() {
  steps_check_name "$1"
  echo "== $1: started"
  set -m # a separate process group, so that it can be stopped with its children
  steps_run "$@" >"$steps_log/$1.out" 2>&1 </dev/null &
  set +m
  step_pid[$1]=$!
}

finish() {
  local status=0
  wait "${step_pid[$1]}" || status=$?
  unset "step_pid[$1]"
  echo "== $1"
  cat "$steps_log/$1.out"
  ((status == 0)) || exit "$status"
  echo "== $1: $(cut -d' ' -f1 "$steps_log/$1.result") s"
}

steps_end() {
  local status=$? name seconds cpu ended all=0
  trap - EXIT
  ((BASHPID == $$)) || exit "$status" # for a step that a signal ends before it has its own traps
  for name in "${!step_pid[@]}"; do
    kill -- "-${step_pid[$name]}" 2>/dev/null || true
    wait "${step_pid[$name]}" 2>/dev/null || true
  done
  echo
  printf '%9s %9s  %s\n' seconds CPU step
  for name in "${step_names[@]}"; do
    # A step that was stopped while it wrote its result left an empty file.
    if [[ -e $steps_log/$name.result ]] && read -r seconds cpu ended <"$steps_log/$name.result"; then
      ((ended == 0)) && ended='' || ended="  failed ($ended)"
      all=$((all + cpu))
      cpu=$((cpu / 10)).$((cpu % 10))
    else
      seconds=- cpu=- ended='  not finished'
    fi
    printf '%9s %9s  %s%s\n' "$seconds" "$cpu" "$name" "$ended"
  done
  printf '%9s %9s  %s\n' "$(steps_seconds "$steps_begin")" $((all / 10)).$((all % 10)) all
  rm -rf "$steps_log"
  exit "$status"
}
trap steps_end EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
