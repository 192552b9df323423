#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# `./dev package`: builds the packages of debian/ for the release NAME, in a chroot that has what
# debian/control names and nothing else, and checks them with lintian.
#
#   build.sh NAME OUTPUT [before]
#
# OUTPUT/NAME gets the packages. With `before`, OUTPUT/NAME/before gets packages of the same
# sources with a lower version and other configuration files, for the test of an upgrade.
set -euo pipefail

name=$1 output=$2
. tests/chroot.sh
root=$cache/builder
work=$cache/packages
before=${3-}

# The version of Debian (12, 13) is a part of the package's version, so that an upgrade of Debian
# upgrades the packages, too. docs/releases.md describes versions.
package_version() {
    local version debian
    debian=$(sed -n 's/^VERSION_ID="\(.*\)"$/\1/p' "$root/etc/os-release")
    version=$(/usr/bin/python3 lib/version.py "$1") # as of the programs, which a clone builds
    echo "${version%-*}-1+deb$debian"
}

git_here() { git -c safe.directory="$PWD" "$@"; }

# The files of the working tree, also where it is not from git.
copy_source() {
    rm -rf "$work"
    mkdir -p "$work/nightjar"
    if git_here rev-parse >/dev/null 2>&1; then
        git_here ls-files -z --cached --others --exclude-standard |
            tar -c --null --files-from=- --ignore-failed-read 2>/dev/null
    else
        tar -c --exclude='./build*' .
    fi | tar -x -C "$work/nightjar"
}

# changelog VERSION
changelog() {
    local maintainer date
    maintainer=$(sed -n 's/^Maintainer: //p' debian/control)
    date=$(git_here log -1 --format=%cD 2>/dev/null) || date=$(date -R)
    printf 'nightjar (%s) %s; urgency=medium\n\n  * docs/changes.md lists the changes.\n\n' \
        "$1" "$name"
    printf ' -- %s  %s\n' "$maintainer" "$date"
}

if [ "${4-}" = inside ]; then
    mount_chroot "$root"
    mount --bind "$work" "$root/packages"
    inside "$root" /packages/nightjar '
        apt-get -qq update
        apt-get -qq build-dep -y --no-install-recommends ./ >/dev/null
        apt-get -qq install -y --no-install-recommends lintian >/dev/null'
    inside "$root" /packages/nightjar 'nice dpkg-buildpackage --build=binary --no-sign'
    inside "$root" /packages 'lintian --allow-root --fail-on error *.changes'
    inside "$root" /packages/nightjar '
        ln -s obj-* build-release
        python3 -m tests.package.test_hardening'
    [ "$before" ] || exit 0
    mkdir "$work/new"
    mv "$work"/*.* "$work/new"
    changelog 0~before-1 >"$work/nightjar/debian/changelog"
    for file in conf logrotate; do
        echo '# of the version before' >>"$work/nightjar/debian/nightjar.$file"
    done
    inside "$root" /packages/nightjar '
        rm -f debian/files debian/*.debhelper.log
        nice dpkg-buildpackage --build=binary --no-sign --no-pre-clean'
    mkdir "$work/new/before"
    mv "$work"/*.* "$work/new/before"
    mv "$work/new"/* "$work"
    rmdir "$work/new"
    exit
fi

lock_chroots
make_chroot builder || true
mkdir -p "$root/packages"
copy_source
project=$(sed -n "s/^ *version: '\(.*\)',$/\1/p" meson.build)
version=$(package_version "$project")
say "packages of version $version; the log is $cache/packages.log"
changelog "$version" >"$work/nightjar/debian/changelog"
unshare --mount --pid --fork --kill-child bash tests/debs/build.sh "$name" "$output" "$before" \
    inside >"$cache/packages.log" 2>&1 || {
    grep -E 'error: |^FAILED|Error |^[EW]: ' "$cache/packages.log" | cut -c-300 | tail -n 20 >&2
    die "no packages; $cache/packages.log has all of it"
}
grep -E '^[EW]: ' "$cache/packages.log" >&2 || true
rm -rf "${output:?}/$name"
mkdir -p "$output/$name"
rm -rf "$work/nightjar"
mv "$work"/* "$output/$name"
chown -R --reference=. "$output"
say "packages in $output/$name"
