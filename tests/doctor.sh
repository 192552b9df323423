#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# `./dev doctor`: one line for each thing nightjar wants of a machine, and what to do when it is not
# so. Changes nothing. Arguments: the least nghttp2 version, then the Debian packages. What a server
# on a NIC needs is said by `nightjar doctor`, where it is built.
set -u
nghttp2_min=$1
shift
warnings=0

ok() { printf 'ok    %-12s %s\n' "$1" "$2"; }
warn() {
    printf 'warn  %-12s %s\n' "$1" "$2"
    warnings=$((warnings + 1))
}
# check NAME WHAT-IS DO-INSTEAD COMMAND...
check() {
    local name=$1 is=$2 instead=$3
    shift 3
    if "$@" >/dev/null 2>&1; then ok "$name" "$is"; else warn "$name" "$is: $instead"; fi
}

nightjar=
for build in ${NJ_BUILD-} build build-release; do # one that is older knows no doctor
    [ -z "$nightjar" ] && "$build/app/nightjar/nightjar" doctor --help >/dev/null 2>&1 &&
        nightjar=$build/app/nightjar/nightjar
done

cpus=$(nproc)
model=$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -1)
check cpu "$cpus x ${model:-?}" "lcores will share one CPU and be slow; give it two" \
    [ "$cpus" -ge 2 ]
check sse4.2 "DPDK's least on x86-64" "this CPU can't run Debian's DPDK" \
    sh -c 'grep -qw sse4_2 /proc/cpuinfo || [ "$(uname -m)" != x86_64 ]'
memory_mib=$(awk '/MemAvailable/ {print int($2 / 1024)}' /proc/meminfo)
check memory "$memory_mib MiB available" "./dev run wants 1024, the tests 4096" \
    [ "$memory_mib" -ge 4096 ]
disk_mib=$(df -Pm . | awk 'NR == 2 {print $4}')
check disk "$disk_mib MiB free here" "builds and tests want 4096" [ "$disk_mib" -ge 4096 ]
if [ -z "$nightjar" ]; then
    hugepages=$(awk '/HugePages_Total/ {print $2}' /proc/meminfo)
    check hugepages "${hugepages:-0} reserved" \
        "only a NIC needs them: sysctl vm.nr_hugepages=512" [ "${hugepages:-0}" -gt 0 ]
    check tun "/dev/net/tun" "./dev run needs it: modprobe tun" [ -c /dev/net/tun ]
fi
ok kernel "$(uname -r)"
check netns "network namespaces" "the kernel has none, or you may not make them (sudo)" \
    unshare -n true
check privileges "user $(id -un)" "run and test need root: sudo ./dev ..." [ "$(id -u)" = 0 ]
. /etc/os-release 2>/dev/null
check system "${PRETTY_NAME:-unknown}" "the packages are named for Debian 12 and 13" \
    sh -c '[ "$1" = "debian 12" ] || [ "$1" = "debian 13" ]' sh "${ID:-} ${VERSION_ID:-}"

missing=
for package in $(printf '%s\n' "$@" | sort -u); do
    version=$(dpkg-query -W -f='${Status} ${Version}' "$package" 2>/dev/null |
        sed -n 's/.* installed //p')
    [ -n "$version" ] || missing="$missing $package"
done
check packages "$# wanted, missing:${missing:- none}" \
    "./dev installs what a verb needs when it is root" [ -z "$missing" ]
version=$(dpkg-query -W -f='${Version}' libnghttp2-14 2>/dev/null)
check nghttp2 "${version:-not installed}" \
    "older than $nghttp2_min can be crashed from afar: upgrade" \
    dpkg --compare-versions "${version:-0}" ge "$nghttp2_min"
check dpdk "$(pkg-config --modversion libdpdk 2>/dev/null || echo none)" "wants 22.11 or later" \
    pkg-config --atleast-version=22.11 libdpdk
for program in cc meson ninja python3 curl ip clang-format; do
    version=$("$program" --version 2>/dev/null || "$program" -V 2>/dev/null)
    check "$program" "$(printf '%s\n' "${version:-not here}" | head -1)" "./dev build installs it" \
        command -v "$program"
done
[ "$warnings" = 0 ] && echo "nothing to do" || echo "$warnings to look at"

if [ -n "$nightjar" ]; then
    printf '\nFor a server on a NIC (%s doctor):\n' "$nightjar"
    "$nightjar" doctor
else
    printf '\nFor a server on a NIC: ./dev build, then ./dev doctor again\n'
fi
exit 0
