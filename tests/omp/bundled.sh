#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# bundled.sh <folder of our libgomp.so.1> <C compiler> <endings>: a plug-in that brings a libgomp
# under another name, as packages do that shall run anywhere, and is opened so that it uses it.
set -e
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
here=$(dirname "$(realpath "$0")")
stock=$("$2" -print-file-name=libgomp.so.1)
sed 's/libgomp\.so\.1/libgomp-a.so/g' "$stock" > "$folder/libgomp-a.so"
"$2" -O1 -shared -fPIC -fopenmp -c -o "$folder/plugin.o" "$here/plugin.c"
"$2" -shared -o "$folder/plugin.so" "$folder/plugin.o" "$folder/libgomp-a.so" \
  -Wl,-rpath,"$folder"
said=$(LD_LIBRARY_PATH=$1 "$3" own_runtime "$folder/plugin.so" 2>&1)
echo "$said"
echo "$said" | grep -qx 9
echo "$said" | grep -q "another OpenMP runtime is loaded: $folder/libgomp-a.so, needed by $folder"
