#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# `./dev test --release NAME`: this source on another release of Debian. Builds it in a chroot,
# fetches a page from `./dev run` there, and runs what is the same on every release
# (`./dev test portable`, whose closing line on this machine is the one to compare with).
#
# The chroot and its builds, some 4 GB, stay in /var/cache/nightjar/NAME (or $NJ_RELEASES/NAME) for
# the next run. The mounts are in a mount namespace of this run and the processes in a PID
# namespace, which end with it, however it ends. The source is mounted read-only.
set -euo pipefail

name=$1
cache=${NJ_RELEASES:-/var/cache/nightjar}/$name
root=$cache/root

say() { echo "release $name: $*" >&2; }
die() {
    say "$*"
    exit 1
}

make_root() {
    local new
    [ ! -e "$root" ] || return 0
    new=$(mktemp -d "$cache/new.XXXXXX")
    say "debootstrap into $root, once"
    debootstrap --variant=minbase "$name" "$new" >"$cache/debootstrap.log" 2>&1 || {
        tail -n 20 "$cache/debootstrap.log" >&2
        rm -rf "$new"
        die "debootstrap failed; $cache/debootstrap.log has all of it"
    }
    chmod 755 "$new"
    mkdir "$new/nightjar"
    mv "$new" "$root"
    rm -rf "$cache/build" "$cache/build-release" # of another root, which may have had other tools
}

# What follows runs in the namespaces.

mount_all() {
    local build
    mount --bind "$root" "$root" # `ip netns exec` wants / to be a mount
    mount -t proc proc "$root/proc"
    mount -t sysfs sysfs "$root/sys"
    mount --rbind /dev "$root/dev"
    mount -t tmpfs tmpfs "$root/run"
    mount -t tmpfs tmpfs "$root/tmp"
    mount --bind . "$root/nightjar"
    mount -o remount,bind,ro "$root/nightjar"
    for build in build build-release; do
        mount --bind "$cache/$build" "$root/nightjar/$build"
    done
    cp /etc/resolv.conf "$root/etc/resolv.conf"
}

inside() {
    chroot "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 \
        ${NJ_SIM_SEEDS:+NJ_SIM_SEEDS="$NJ_SIM_SEEDS"} \
        bash -euo pipefail -c 'cd /nightjar; eval "$1"' bash "$1"
}

# What is served is app/site, compared byte for byte. Port 0 would be chosen by the kernel, but
# nobody would tell us.
fetch_a_page='
    port=$(python3 -c "import socket; s = socket.create_server((\"127.0.0.1\", 0))
print(s.getsockname()[1])")
    coproc server { exec ./dev run --port "$port" 2>&1; }
    pid=$server_PID
    ready=
    while read -r line <&"${server[0]}"; do
        echo "  $line"
        case $line in *"Ctrl-C ends it"*) ready=1 && break ;; esac
    done
    [ "$ready" ]
    curl -sS --max-time 30 --http2-prior-knowledge "http://127.0.0.1:$port/" |
        cmp - app/site/index.html
    kill -INT "$pid"
    cat <&"${server[0]}" >/dev/null'

if [ "${2-}" = inside ]; then
    mount_all
    inside './dev build'
    inside "$fetch_a_page" || die "no page came from ./dev run"
    say "a page came from ./dev run"
    inside 'NJ_BUILD=build exec /usr/bin/python3 -m tests.all portable'
    exit
fi

mkdir -p "$cache"
exec 9>"$cache/lock"
flock --nonblock 9 || die "another run has it ($cache/lock)"
make_root
mkdir -p "$cache/build" "$cache/build-release"
for build in build build-release; do # what is mounted there is mounted on a folder
    [ -d $build ] || install -d -o "$(stat -c %u .)" -g "$(stat -c %g .)" $build
done
exec unshare --mount --pid --fork --kill-child bash tests/release.sh "$name" inside
