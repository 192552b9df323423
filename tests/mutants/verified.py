# SPDX-License-Identifier: BSD-3-Clause
"""
tests/mutants/verified has the commit at which all mutants died and all explorers passed
(`./dev test all`). Other runs take those whose files changed since.
"""
import functools
import os
import subprocess

from tests.builds import REPO

FILE = os.path.join(REPO, "tests", "mutants", "verified")


def git(*arguments):
    """The output of git, or None without a repository."""
    try:
        done = subprocess.run(["git", "-c", f"safe.directory={REPO}", *arguments], cwd=REPO,
                              capture_output=True, text=True)
    except FileNotFoundError:
        return None
    return done.stdout if done.returncode == 0 else None


def commit():
    with open(FILE, encoding="ascii") as f:
        return f.read().strip()


def age():
    """How many commits are later; None if the history does not have that commit."""
    n = git("rev-list", "--count", f"{commit()}..HEAD")
    return int(n) if n else None


@functools.lru_cache
def changed():
    """The files that differ from that commit, or None if that is not known."""
    committed = git("diff", "--name-only", commit())
    new = git("ls-files", "--others", "--exclude-standard")
    return None if committed is None or new is None else set((committed + new).split())


def is_changed(path):
    """Has this file, or a file below this folder, changed, or may it have?"""
    files = changed()
    return files is None or any(f == path or f.startswith(path + "/") for f in files)


def head():
    """The commit whose files are here; None without git, or with changes that are not committed."""
    clean = git("status", "--porcelain", "--untracked-files=no") == ""
    return git("rev-parse", "HEAD") if clean else None


def write(tested):
    """All mutants died. `tested`: what head() said before the tests."""
    if tested and tested == head():
        with open(FILE, "w", encoding="ascii") as f:
            f.write(tested)
    else:
        print("tests/mutants/verified is not written: the tested files are not those of a commit")
