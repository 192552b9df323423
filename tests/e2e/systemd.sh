#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# systemd.sh CGROUP ROOT FILES UNIT: runs systemd, which starts UNIT, as the first process of new
# namespaces, on a tmpfs at ROOT with this host's /usr and a copy of FILES. It knows the units in
# FILES/etc/systemd/system only, and /sys and /proc/sys are read-only for it, so that nothing
# changes on this host. Processes are below CGROUP, a new folder of cgroup2. NJ_DEVICES names
# folders of /dev that it gets, too.
set -eu
if [ "${5-}" != inside ]; then
    echo $$ >"$1/cgroup.procs"
    exec unshare --fork --kill-child --pid --mount --net --cgroup --uts --ipc \
        --propagation private sh "$0" "$1" "$2" "$3" "$4" inside
fi
mount -t tmpfs -o mode=755 tmpfs "$2"
cd "$2"
mkdir -p usr etc proc sys dev run var/log tmp opt srv root
for link in bin lib lib64 sbin; do ln -s "usr/$link" "$link"; done
mount --bind /usr usr
mount -o remount,bind,ro usr
mount -t proc proc proc
mount -t sysfs -o ro sysfs sys
mount -t cgroup2 cgroup2 sys/fs/cgroup
mount --bind proc/sys proc/sys
mount -o remount,bind,ro proc/sys
mount -t tmpfs -o mode=755 tmpfs run
mount -t tmpfs -o mode=755 tmpfs dev
mkdir dev/net dev/shm dev/pts
while read -r name major minor; do
    mknod -m 666 "dev/$name" c "$major" "$minor"
done <<END
null 1 3
zero 1 5
full 1 7
random 1 8
urandom 1 9
tty 5 0
net/tun 10 200
END
ln -s /proc/self/fd dev/fd
for name in ${NJ_DEVICES-}; do
    mkdir "dev/$name"
    mount --rbind "/dev/$name" "dev/$name"
done
[ ! -e /etc/ld.so.cache ] || cp /etc/ld.so.cache etc/
cp -r "$3"/. .
ip link set lo up
mount --make-rshared "$2" # among these namespaces: systemd mounts credentials from another one
exec env -i PATH=/usr/sbin:/usr/bin container=test SYSTEMD_UNIT_PATH=/etc/systemd/system \
    SYSTEMD_LOG_TARGET=console chroot . /lib/systemd/systemd --system "--unit=$4"
