#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# `./dev test --release NAME`: this source on another release of Debian. Builds it in a chroot,
# fetches a page from `./dev run` there, and runs what is the same on every release
# (`./dev test portable`, whose closing line on this machine is the one to compare with).
#
# The chroot and its builds, some 4 GB, stay for the next run (tests/chroot.sh). The source is
# mounted read-only.
set -euo pipefail

name=$1
. tests/chroot.sh
root=$cache/root

# In the namespaces.
mount_all() {
    local build
    mount_chroot "$root"
    mount --bind . "$root/nightjar"
    mount -o remount,bind,ro "$root/nightjar"
    for build in build build-release; do
        mount --bind "$cache/$build" "$root/nightjar/$build"
    done
}

# What is served is app/site, compared byte for byte. Port 0 would be chosen by the kernel, but
# nobody would tell us.
fetch_a_page='
    port=$(python3 -c "import socket; s = socket.create_server((\"127.0.0.1\", 0))
print(s.getsockname()[1])")
    coproc server { exec ./dev run --port "$port" 2>&1; }
    pid=$server_PID
    exec 3<&"${server[0]}" # bash unsets the array when the server ends
    ready=
    while read -r line <&3; do
        echo "  $line"
        case $line in *"Ctrl-C ends it"*) ready=1 && break ;; esac
    done
    [ "$ready" ]
    curl -sS --max-time 30 --http2-prior-knowledge "http://127.0.0.1:$port/" |
        cmp - app/site/index.html
    kill -INT "$pid"
    cat <&3 >/dev/null'

if [ "${2-}" = inside ]; then
    mount_all
    inside "$root" /nightjar './dev build'
    inside "$root" /nightjar "$fetch_a_page" || die "no page came from ./dev run"
    say "a page came from ./dev run"
    # a test makes locales
    inside "$root" / 'apt-get -qq install -y --no-install-recommends locales >/dev/null'
    inside "$root" /nightjar 'NJ_BUILD=build exec /usr/bin/python3 -m tests.all portable'
    exit
fi

lock_chroots
if make_chroot root; then # builds of another root may have had other tools
    rm -rf "$cache/build" "$cache/build-release"
fi
mkdir -p "$root/nightjar" "$cache/build" "$cache/build-release"
for build in build build-release; do # what is mounted there is mounted on a folder
    [ -d $build ] || install -d -o "$(stat -c %u .)" -g "$(stat -c %g .)" $build
done
in_namespaces bash tests/release.sh "$name" inside
