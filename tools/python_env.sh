#!/usr/bin/env bash
# Python packages for tests: installs what NAME.txt in tools/python lists (pinned) into
# BUILD/python-NAME, once, and runs a program with them.
#   tools/python_env.sh BUILD NAME PROGRAM [WORD…]
# Where they cannot be had the status is 77 (skipped); under CI=true it is 1.
set -euo pipefail
build=$1 name=$2
shift 2
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
. "$root/tools/setup.sh"

wanted="$root/tools/python/$name.txt"
folder="$build/python-$name"
python=$(python_with_pip) || python=

install() {
  [ -n "$python" ] || { say "no python3 with pip"; return 1; }
  mkdir -p "$build" || return 1
  local work
  work=$(mktemp -d "$build/.python-$name.XXXXXX") || return 1
  if ! "$python" -m pip install --quiet --disable-pip-version-check --root-user-action=ignore \
    --target "$work" --requirement "$wanted" >&2; then
    rm -rf "$work"
    return 1
  fi
  cp "$wanted" "$work/installed.txt"
  rm -rf "$folder"
  mv "$work" "$folder"
}

if ! cmp -s "$wanted" "$folder/installed.txt" && ! install; then
  say "the Python packages of $wanted could not be installed"
  [ "${CI:-}" = true ] && exit 1
  if [ -n "${PAGODA_SKIPS_FILE:-}" ]; then
    printf '%s\tall of it\tno Python packages: %s\n' "${PAGODA_TEST_NAME:-$name}" "$wanted" \
      >>"$PAGODA_SKIPS_FILE"
  fi
  exit 77
fi
PYTHONPATH="$folder${PYTHONPATH:+:$PYTHONPATH}" exec "$python" "$@"
