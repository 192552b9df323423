# SPDX-License-Identifier: BSD-3-Clause
"""
python3 -m tests.mutants.reverts [--seed N] [--n N] [--commits N]

Do the tests find what they once were written for? Draws commits that changed code of lib or app
and added tests, reverts the code of one at a time in a copy of the repository, and runs the tests
that came with it, on the build that has them in a whole run. One of them must fail. A commit whose
code has changed since, so that it cannot be reverted or the rest does not compile without it, is
drawn again. Needs root, for end-to-end tests.
"""
import argparse
import os
import random
import re
import secrets
import subprocess
import sys
import tempfile

from tests import builds
from tests.builds import REPO

CODE = re.compile(r"(lib|app)/.*\.(c|h|def)$")
# {pattern of a test's file: build}; None: the build that run.py says
TESTS = {re.compile(r"tests/unit/(\w+)\.c$"): builds.SANITIZED,
         re.compile(r"tests/script/(\w+)\.pkt$"): builds.SANITIZED,
         re.compile(r"tests/fuzz/corpus/(\w+)/"): builds.SANITIZED,
         re.compile(r"tests/e2e/test_(\w+)\.py$"): None}
# Commits that change no behaviour have nothing that a test could find.
NO_FIX = re.compile(r"^docs:|names|words|English|sentences|comment|say each|without |one way"
                    r"|one check|exist once|drop |move|tests: |terms|described|replaced"
                    r"|are the only|fewer", re.I)


def git(*arguments, cwd=REPO, check=True, **more):
    return subprocess.run(["git", *arguments], cwd=cwd, check=check, capture_output=True,
                          text=True, errors="replace", **more)


def candidates(n_commits):
    """[(commit, subject, files of code, {test: build})] of the last commits."""
    found = []
    for line in git("log", "--no-merges", f"-{n_commits}", "--format=%h %s").stdout.splitlines():
        commit, subject = line.split(" ", 1)
        files = git("diff", "--name-only", f"{commit}^", commit, check=False).stdout.split()
        code = [f for f in files if CODE.match(f)]
        tests = {match[1]: build for f in files for pattern, build in TESTS.items()
                 if (match := pattern.match(f)) and os.path.exists(os.path.join(REPO, f))}
        if code and tests and not NO_FIX.search(subject) and adds_tests(commit):
            found.append((commit, subject, code, tests))
    return found


def adds_tests(commit):
    """Has the commit more tests than its parent, or an input of a fuzz target more?"""
    text = git("diff", f"{commit}^", commit, "--", "tests", check=False).stdout
    signs = re.findall(r"^([+-])(?:Test\(|ParameterizedTest\(| +def test_)", text, re.M)
    return signs.count("+") > signs.count("-") or \
        bool(re.search(r"^--- /dev/null\n\+\+\+ b/tests/script|^Binary files /dev/null and b/tests/"
                       r"fuzz/corpus", text, re.M))


def revert(folder, commit):
    """Reverts the code of a commit in the copy. Returns whether that was possible."""
    git("reset", "--hard", "HEAD", cwd=folder)
    git("-c", "merge.renameLimit=5000", "revert", "--no-commit", commit, cwd=folder, check=False)
    changed = git("diff", "--name-only", "HEAD", cwd=folder).stdout.split()
    conflicts = git("diff", "--name-only", "--diff-filter=U", cwd=folder).stdout.split()
    if any(CODE.match(f) for f in conflicts) or not any(CODE.match(f) for f in changed):
        return False
    others = [f for f in {*changed, *conflicts} if not CODE.match(f)]
    if others:
        known = git("ls-tree", "-r", "--name-only", "HEAD", "--", *others,
                    cwd=folder).stdout.split()
        git("checkout", "HEAD", "--", *known, cwd=folder)
        for path in set(others) - set(known):
            if os.path.exists(os.path.join(folder, path)):
                os.unlink(os.path.join(folder, path))
    return True


def builds_of(test, build):
    """The build of a test; an end-to-end test may have classes on both."""
    if build:
        return [build]
    from tests.e2e import run
    return sorted({job.build for job in run.jobs_of(run.all_tests())
                   if job.name.startswith(f"test_{test}.")})


def run_test(folder, test, build):
    """(how many passed, how many failed, output), or None if the code does not compile."""
    option = ["--asan"] if build == builds.SANITIZED else []
    done = subprocess.run(["bash", "./dev", "test", *option, test], cwd=folder, text=True,
                          capture_output=True, errors="replace")
    counts = re.findall(r"^(\d+) passed, (\d+) failed", done.stdout, re.M)
    return (*map(int, counts[-1]), done.stdout) if counts else None


def failure(folder, tests):
    """What a test said that failed, None if none did, or False if the code does not compile."""
    for test, build in sorted(tests.items()):
        for flavour in builds_of(test, build):
            found = run_test(folder, test, flavour)
            if found is None:
                return False
            if found[1]:
                lines = re.findall(r"^(?:FAIL .*|\[----\].*|.*\bFAIL\b.*|.* failed:.*)", found[2],
                                   re.M)
                return f"{test} on {flavour}: {lines[0][:100] if lines else 'failed'}"
    return None


def passes(folder, tests):
    """Without the revert each of the tests must pass, or a failure would show nothing."""
    git("reset", "--hard", "HEAD", cwd=folder)
    for test, build in sorted(tests.items()):
        for flavour in builds_of(test, build):
            found = run_test(folder, test, flavour)
            if not found or found[1] or not found[0]:
                return False
    return True


def main():
    parser = argparse.ArgumentParser(prog="reverts.py")
    parser.add_argument("--seed", type=int, default=secrets.randbits(32))
    parser.add_argument("--n", type=int, default=12, help="commits to revert [12]")
    parser.add_argument("--commits", type=int, default=300, help="to draw from [300]")
    args = parser.parse_args()
    pool = candidates(args.commits)
    random.Random(args.seed).shuffle(pool)
    print(f"seed {args.seed}: {len(pool)} of {args.commits} commits changed code and tests")
    found = missed = 0
    with tempfile.TemporaryDirectory() as above:
        folder = os.path.join(above, "copy")
        git("clone", "--quiet", REPO, folder)
        for commit, subject, _, tests in pool:
            if found + missed == args.n:
                break
            if not revert(folder, commit):
                print(f"{commit} {subject}\n    drawn again: it cannot be reverted", flush=True)
                continue
            said = failure(folder, tests)
            if said is False:
                print(f"{commit} {subject}\n    drawn again: it does not compile", flush=True)
                continue
            if said and not passes(folder, tests):
                print(f"{commit} {subject}\n    drawn again: its tests fail without the revert, "
                      "too", flush=True)
                continue
            found, missed = found + bool(said), missed + (not said)
            print(f"{commit} {subject}\n    {said or 'NOT FOUND by ' + ', '.join(tests)}",
                  flush=True)
    print(f"{found} of {found + missed} reverted commits were found")
    return int(missed > 0 or found < args.n)


if __name__ == "__main__":
    sys.exit(main())
