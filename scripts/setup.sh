#!/bin/bash
# All set-up on a Debian 12 machine: installs the packages that are missing, builds, and checks the gated delta rule.
#   scripts/setup.sh            everything
#   scripts/setup.sh --build    packages and build, without the check
#   scripts/setup.sh --packages packages only
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

what=${1:-all}
case $what in
  all | --build | --packages) ;;
  -h | --help) sed -n '2,5s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"; exit 0 ;;
  *) echo "setup.sh: unknown argument '$what'; --build and --packages are offered" >&2; exit 2 ;;
esac

packages=(
  libmlir-22-dev mlir-22-tools llvm-22-dev llvm-22-tools clang-22 lld-22 liblld-22-dev clang-format-22
  cmake ninja-build g++ python3 git
  doctest-dev libfmt-dev libcli11-dev nlohmann-json3-dev libxxhash-dev libzstd-dev zlib1g-dev libboost-dev libboost-context-dev
)

install_missing() {
  local missing=() package
  for package in "${packages[@]}"; do
    [[ $(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null) == installed ]] || missing+=("$package")
  done
  if ((${#missing[@]} == 0)); then return; fi
  local sudo=()
  if ((EUID != 0)); then
    command -v sudo >/dev/null || {
      echo "setup.sh: run as root, or install sudo: these packages are missing: ${missing[*]}" >&2
      exit 1
    }
    sudo=(sudo)
  fi
  echo "setup.sh: installing ${missing[*]}"
  "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get update -q
  "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends "${missing[@]}"
}

command -v apt-get >/dev/null && command -v dpkg-query >/dev/null || {
  echo "setup.sh: this is no Debian: install what the list 'packages' in this script names, then run cmake --preset" \
    "default && cmake --build --preset default" >&2
  exit 1
}
install_missing
[[ $what != --packages ]] || exit 0

cmake --preset default
cmake --build --preset default
[[ $what != --build ]] || exit 0

build/bin/latile check gated_delta_rule
