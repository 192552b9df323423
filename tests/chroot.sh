# SPDX-License-Identifier: BSD-3-Clause
# Chroots of releases of Debian, for the scripts that source this file with the release in $name.
# They stay in /var/cache/nightjar/NAME (or $NJ_RELEASES/NAME).
#
# Mounts are in a mount namespace of a run and processes in a PID namespace (in_namespaces). Both
# end with the run, however it ends.

cache=${NJ_RELEASES:-/var/cache/nightjar}/$name

say() { echo "release $name: $*" >&2; }
die() {
    say "$*"
    exit 1
}

# Only one run may use the chroots of a release.
lock_chroots() {
    mkdir -p "$cache"
    exec 9>"$cache/lock"
    flock --nonblock 9 || die "another run has it ($cache/lock)"
}

# make_chroot FOLDER: makes $cache/FOLDER, with a minimal system of the release; returns 1 if it
# exists. FOLDER `clean` is the one that all others are copies of.
make_chroot() {
    local new
    [ ! -e "$cache/$1" ] || return 1
    [ "$1" = clean ] || make_chroot clean || true # it exists
    rm -rf "$cache/$1".?????? # of a run that was killed
    new=$(mktemp -d "$cache/$1.XXXXXX")
    if [ "$1" = clean ]; then
        say "debootstrap into $cache/clean, once"
        debootstrap --variant=minbase "$name" "$new" >"$cache/debootstrap.log" 2>&1 || {
            tail -n 20 "$cache/debootstrap.log" >&2
            rm -rf "$new"
            die "debootstrap failed; $cache/debootstrap.log has all of it"
        }
        chmod 755 "$new"
    else
        cp -a "$cache/clean/." "$new" || { rm -rf "$new" && die "the copy of $cache/clean failed"; }
    fi
    mv "$new" "$cache/$1"
}

in_namespaces() { exec unshare --mount --pid --fork --kill-child "$@"; }

# What follows runs in the namespaces.

# mount_chroot ROOT: what programs expect of a running system, with the network of the caller.
mount_chroot() {
    mount --bind "$1" "$1" # `ip netns exec` wants / to be a mount
    mount -t proc proc "$1/proc"
    mount -t sysfs sysfs "$1/sys"
    mount --rbind /dev "$1/dev"
    mount -t tmpfs tmpfs "$1/run"
    mount -t tmpfs tmpfs "$1/tmp"
    cp /etc/resolv.conf "$1/etc/resolv.conf"
}

# inside ROOT FOLDER SCRIPT [ARGUMENTS...]: bash in the chroot.
inside() {
    local root=$1 folder=$2 script=$3
    shift 3
    chroot "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 \
        DEBIAN_FRONTEND=noninteractive ${NJ_SIM_SEEDS:+NJ_SIM_SEEDS="$NJ_SIM_SEEDS"} \
        bash -euo pipefail -c "cd $folder; $script" bash "$@"
}
