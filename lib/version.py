#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""
version.py RELEASE

Prints the version of these sources, of which RELEASE (meson.build) is the first part:

  0.1.0                                     the commit with the tag v0.1.0
  0.1.0~git202611261838.b86b4def            another commit: its time (UTC) and hash
  0.1.0~git202611261838.b86b4def+changed    the same with changes that are not committed
  0.1.0~git202611261838.b86b4def-1+deb12    sources without git: the version in debian/changelog

Without git and without debian/changelog it is RELEASE alone.
"""
import os
import re
import subprocess
import sys

SOURCES = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def git(sources, *command):
    """The output of git, or None if it fails. It also reads a clone of another user, and does not
    lock the index, which another git may be changing."""
    try:
        done = subprocess.run(
            ["git", "-c", "safe.directory=*", "--no-optional-locks", *command], cwd=sources,
            env={**os.environ, "TZ": "UTC0"}, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            text=True, check=False)
    except OSError:
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def of_commit(sources, release):
    """None: the sources are not a clone. They may be a folder in another repository."""
    if git(sources, "rev-parse", "--show-prefix") != "":
        return None
    commit = git(sources, "log", "-1", "--abbrev=8", "--format=%cd.%h",
                 "--date=format-local:%Y%m%d%H%M")
    if not commit:
        return None
    tags = git(sources, "tag", "--points-at", "HEAD") or ""
    version = release if f"v{release}" in tags.split() else f"{release}~git{commit}"
    return version + "+changed" * bool(git(sources, "status", "--porcelain"))


def of_changelog(sources):
    """The version of the newest entry (deb-changelog(5)), or None."""
    try:
        with open(os.path.join(sources, "debian", "changelog"), encoding="utf-8") as f:
            entry = re.match(r"nightjar \(([0-9][0-9A-Za-z.+~-]*)\)", f.readline())
    except (OSError, UnicodeDecodeError):
        return None
    return entry[1] if entry else None


def version(sources, release):
    return of_commit(sources, release) or of_changelog(sources) or release


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__.strip())
    print(version(SOURCES, sys.argv[1]))
