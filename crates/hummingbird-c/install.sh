#!/bin/sh
# Installs the header, the libraries and the pkg-config file below PREFIX. The libraries come from the folder
# in which they were built:
#   cargo build --release -p foxy-hummingbird-c && crates/hummingbird-c/install.sh PREFIX [target/release]
set -eu
prefix=${1:?usage: install.sh PREFIX [FOLDER-OF-THE-LIBRARIES]}
here=$(cd "$(dirname "$0")" && pwd)
built=${2:-$here/../../target/release}
version=$(sed -n 's/^version = "\(.*\)"/\1/p' "$here/../../Cargo.toml" | head -1)
mkdir -p "$prefix/include" "$prefix/lib/pkgconfig"
cp "$here/include/hummingbird.h" "$prefix/include/"
cp "$built/libhummingbird.so" "$built/libhummingbird.a" "$prefix/lib/"
sed -e "s|@PREFIX@|$prefix|" -e "s|@VERSION@|$version|" "$here/hummingbird.pc.in" \
    >"$prefix/lib/pkgconfig/hummingbird.pc"
