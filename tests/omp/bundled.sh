#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# bundled.sh <folder of our libraries> <C compiler> <endings> <stock library>: a plug-in that brings
# an OpenMP library under another name, as packages do that shall run anywhere, and is opened so
# that it uses it. One line must say so.
set -e
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
here=$(dirname "$(realpath "$0")")
name=$(basename "$4")         # libgomp.so.1
bundled=${name%%.*}-a.so      # libgomp-a.so
sed "s/$name/$bundled/g" "$4" > "$folder/$bundled"
"$2" -O1 -shared -fPIC -fopenmp -c -o "$folder/plugin.o" "$here/plugin.c"
"$2" -shared -o "$folder/plugin.so" "$folder/plugin.o" "$folder/$bundled" -Wl,-rpath,"$folder"
said=$(LD_LIBRARY_PATH=$1 "$3" own_runtime "$folder/plugin.so" 2>&1)
echo "$said"
echo "$said" | grep -qx 9
wanted="another OpenMP runtime is loaded: $folder/$bundled, needed by $folder"
[ "$(echo "$said" | grep -c "$wanted")" -eq 1 ]
[ "$(echo "$said" | grep -c "another OpenMP runtime")" -eq 1 ]
