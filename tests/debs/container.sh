#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# `./dev package --container`: builds an image by the Containerfile from the packages of trixie in
# FOLDER, runs it on a tap, fetches pages and upgrades to a second container. No registry is asked:
# the base image is the minimal system of tests/chroot.sh.
#
#   container.sh FOLDER
#
# Images and containers are in memory, in the mount namespace of this run. The network of the
# containers is a namespace of this run, too.
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

# Starts a container that serves, and waits until it does. `pids` has its process.
declare -A pids
start_server() {
    local name=$1
    podman run --rm --name "$name" --network host --cgroups disabled \
        --cap-add NET_ADMIN --device /dev/net/tun --volume "$top/site:/srv/www:ro" \
        --volume "$top/etc:/etc/nightjar:ro" --volume "$top/shared:/run/nightjar" \
        localhost/nightjar -l 0 --preset tap,iface=nj0 -- \
        --addr 198.18.0.2/24 --root /srv/www --config /etc/nightjar/nightjar.conf \
        --tls-cert /etc/nightjar/cert.pem --tls-key /etc/nightjar/key.pem \
        --upgrade-socket /run/nightjar/upgrade >"$top/$name.log" 2>&1 &
    pids[$name]=$!
    timeout 60 grep -qm 1 'ready:' <(tail -n +1 -F --pid "${pids[$name]}" "$top/$name.log") || {
        cat "$top/$name.log"
        die "container $name did not become ready"
    }
    sed 's/^/  /' "$top/$name.log"
}

expect_end() {
    local status=0
    wait "${pids[$1]}" || status=$?
    [ $status -eq 0 ] || {
        cat "$top/$1.log"
        die "container $1 ended with status $status"
    }
}

fetch() {
    curl -sS --fail --max-time 60 --resolve nightjar.test:443:198.18.0.2 \
        --cacert "$top/etc/cert.pem" "$@"
}

# A page in cleartext and over TLS; an upgrade to a second container during a download.
serve_pages() {
    local page=$top/site/index.html download
    ip link set lo up
    mkdir "$top/etc" "$top/shared"
    head -c 200000 /dev/urandom >"$page"
    head -c 8000000 /dev/urandom >"$top/site/large"
    printf '[class default]\nclient_rate = 1MiB/s\n' >"$top/etc/nightjar.conf"
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 \
        -subj /CN=nightjar.test -addext subjectAltName=DNS:nightjar.test \
        -keyout "$top/etc/key.pem" -out "$top/etc/cert.pem" 2>/dev/null
    chmod 644 "$top/etc/key.pem" # user nightjar of the container reads it
    start_server first
    ip addr add 198.18.0.1/24 dev nj0
    ip link set nj0 up
    fetch --http2-prior-knowledge http://198.18.0.2/ | cmp - "$page" ||
        die "no page came from the container"
    fetch https://nightjar.test/ | cmp - "$page" || die "no page came over TLS"
    say "a page came from the container"
    podman kill --signal HUP first >/dev/null
    fetch -o "$top/large" https://nightjar.test/large &
    download=$!
    start_server second
    fetch https://nightjar.test/ | cmp - "$page" || die "no page came from the second container"
    wait $download && cmp "$top/large" "$top/site/large" || die "the upgrade cut a download"
    expect_end first
    grep -q 'took over from process' "$top/second.log" || die "no container took over"
    grep -q 'read again' "$top/first.log" || die "the first container did not reload"
    podman stop second >/dev/null
    expect_end second
    say "a second container took over"
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
    serve_pages
    exit
    ;;
esac

lock_chroots
make_chroot clean || true
mkdir -p "$top"
in_namespaces --mount-proc bash tests/debs/container.sh "$folder" inside
