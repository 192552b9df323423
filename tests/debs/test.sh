#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# `./dev package --test`: installs the packages that build.sh made with `before` in a minimal system
# of the release NAME, as test_debs.py says.
#
#   test.sh NAME OUTPUT
#
# The system is an overlay over the chroot: what is written to it is in memory. The network is that
# of the host for the packages of Debian, and a namespace of this run afterwards.
set -euo pipefail

name=$1 packages=$2/$1
. tests/chroot.sh
top=$cache/test

# overlay LOWER: mounts it below $top.
overlay() {
    mkdir "$top/$1" "$top/$1.new" "$top/$1.work"
    mount -t overlay overlay "$top/$1" \
        -o "lowerdir=$cache/$1,upperdir=$top/$1.new,workdir=$top/$1.work"
    mount_chroot "$top/$1"
    mkdir -p "$top/$1/packages"
    mount --bind "$packages" "$top/$1/packages"
    mount -o remount,bind,ro "$top/$1/packages"
    mount --bind "$cache/archives" "$top/$1/var/cache/apt/archives"
}

# What ours need, and what the test runs. Ours come later, without a network.
install_dependencies='
    apt-get -qq update
    needed=$(apt-get -s install --no-install-recommends $(ls /packages/*.deb | grep -v dbgsym) |
        sed -n "s/^Inst \([^ ]*\) .*/\1/p" | grep -v nightjar)
    apt-get -qq install -y --no-install-recommends $needed logrotate procps >/dev/null'

if [ "${3-}" = inside ]; then
    mount -t tmpfs tmpfs "$top"
    overlay clean
    inside "$top/clean" / "$install_dependencies" </dev/null
    overlay builder
    exec unshare --net env NJ_CHROOT="$top/clean" NJ_BUILDER="$top/builder" \
        /usr/bin/python3 -m unittest -v tests.debs.test_debs
fi

[ -d "$packages/before" ] || die "no packages of a version before in $packages"
lock_chroots
make_chroot clean || true
mkdir -p "$top" "$cache/archives/partial"
in_namespaces bash tests/debs/test.sh "$name" "$2" inside
