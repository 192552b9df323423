#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# `./dev package --container`: builds an image by the Containerfile from the packages of trixie in
# FOLDER, runs it on a tap and fetches a page. No registry is asked: the base image is the minimal
# system of tests/chroot.sh.
#
#   container.sh FOLDER
#
# Images and containers are in memory, in the mount namespace of this run. The network of the
# container is a namespace of this run, too.
set -euo pipefail

name=trixie folder=$1
. tests/chroot.sh
top=$cache/container

# Copies in place of overlays, and no cgroups: this works wherever `./dev test` does.
podman() {
    command podman --root "$top/images" --runroot "$top/run" --tmpdir "$top/tmp" \
        --storage-driver vfs --cgroup-manager cgroupfs --network-backend netavark \
        --events-backend none "$@"
}

serve_a_page() {
    local line ready='' pid
    ip link set lo up
    head -c 200000 /dev/urandom >"$top/site/index.html"
    coproc server {
        exec 2>&1
        podman run --rm --network host --cgroups disabled --cap-add NET_ADMIN \
            --device /dev/net/tun --volume "$top/site:/srv/www:ro" localhost/nightjar \
            -l 0 --preset tap,iface=nj0 -- --addr 198.18.0.2/24 --root /srv/www
    }
    pid=$server_PID
    while read -r line <&"${server[0]}"; do
        echo "  $line"
        case $line in *ready:*) ready=1 && break ;; esac
    done
    [ "$ready" ] || die "the container ended before it was ready"
    ip addr add 198.18.0.1/24 dev nj0
    ip link set nj0 up
    curl -sS --fail --max-time 30 --http2-prior-knowledge http://198.18.0.2/ |
        cmp - "$top/site/index.html" || die "no page came from the container"
    say "a page came from the container"
    podman stop --latest >/dev/null
    cat <&"${server[0]}" || true
    wait "$pid" || die "the container ended with status $?"
}

case ${2-} in
inside)
    mount -t tmpfs tmpfs "$top"
    mkdir "$top/site"
    mount -t tmpfs tmpfs /run
    mount -t cgroup2 cgroup2 /sys/fs/cgroup # crun refuses both versions at once
    mkdir -p "$top/tmp"
    tar -c -C "$cache/clean" . | podman import --quiet - localhost/debian:trixie >/dev/null
    say "building the image"
    podman build --quiet --isolation chroot --network host --file Containerfile \
        --build-arg BASE=localhost/debian:trixie --tag localhost/nightjar "$folder" \
        >"$cache/container.log" 2>&1 || {
        tail -n 20 "$cache/container.log" >&2
        die "no image; $cache/container.log has all of it"
    }
    exec unshare --net bash tests/debs/container.sh "$folder" serve
    ;;
serve)
    serve_a_page
    exit
    ;;
esac

lock_chroots
make_chroot clean || true
mkdir -p "$top"
in_namespaces --mount-proc bash tests/debs/container.sh "$folder" inside
