#!/bin/bash
# Builds the command as one file that carries LLVM and MLIR, for a machine without them, and packs it.
#   bench/portable.sh [BUILD]    BUILD/bin/latile-portable and latile-portable.xz beside it; default build
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
build=${1:-build}
ninja -C "$build" latile_portable
file=$build/bin/latile-portable
if ldd "$file" | grep -Eq 'LLVM|MLIR|fmt|boost|stdc\+\+'; then
  echo "portable.sh: $file still needs:" >&2
  ldd "$file" >&2
  exit 1
fi
xz -6 --threads=0 --keep --force "$file"
bytes=$(stat -c %s "$file.xz")
echo "$file.xz: $((bytes / 1024)) KiB ($(($(stat -c %s "$file") / 1048576)) MiB unpacked)"
if ((bytes > 20 * 1024 * 1024)); then
  echo "portable.sh: above 20 MiB" >&2
  exit 1
fi
