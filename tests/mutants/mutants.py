# SPDX-License-Identifier: BSD-3-Clause
"""
Mutation tests: python3 -m tests.mutants.mutants [-j N] [--changed] BUILD [PATTERN].

Each list has the mutations of one source. tests/mutants/NAME.txt is for lib/sched/NAME.c,
tests/mutants/LAYER/NAME.txt for lib/LAYER/NAME.c, and tests/mutants/reference/NAME.txt for
perf/reference/NAME.c:

    [name]
    The fault, in one sentence.
    killed by: explore WORLDS
    -lines of the source, as in a diff (lines that begin with a blank are kept),
    +and their replacement

Each mutant is compiled into the programs of its `killed by` lines, with the flags of BUILD, and all
of them must fail:

    explore WORLDS     nj-explore WORLDS quick, with a message of the explorer
    unit NAME [TEST]   tests/unit/NAME.c, or one test of it, with a failure of Criterion
    hang NAME TEST     this test, which must not end
    sim SEEDS [--tls]  nj-sim, with one of this many seeds
    fuzz TARGET        the corpus of a fuzz target, which must abort
    cold               nj-sim-cold: the bounds of hot clients
    e2e TEST           an end-to-end test with the mutated nightjar, which must crash (root)
    race               the stress test with ThreadSanitizer, which must report a data race in the
                       producer

With --changed it tests the mutants whose source, list or test changed since all of them died
(verified.py).

A mutant whose lines are not in the source exactly once, or that does not compile, is an error: the
list must be kept up to date with the code.
"""
import argparse
import collections
import concurrent.futures
import glob
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import threading
import time

from tests.builds import REPO
from tests.mutants import verified

REFERENCE = "perf/reference/libnj_reference.a"
LIBRARIES = [REFERENCE, "lib/libnj_strategy.a", "lib/libnj_sched.a",
             "lib/libnj_base.a"]
LIBRARY = re.compile(r"lib/libnightjar(-internal)?\.so")
SYSTEM = ["-lboost_context", "-lsodium", "-lm", "-pthread"]
LONGEST = 120  # seconds for a program, on a busy machine
HANG = 10  # seconds for a test that must hang, and takes milliseconds without the mutation
RACES = 5  # runs of the stress test, each with its seed

Mutant = collections.namedtuple("Mutant", "name list source what killers old new")


class Broken(Exception):
    """The list, or a mutant in it, is invalid."""


# --- the lists --------------------------------------------------------------------------------

def parse(text, source, path):
    """The mutants of one list, which is at `path`."""
    for block in re.split(r"^\[", text, flags=re.M)[1:]:
        name, body = block.split("]\n", 1)
        lines = [line for line in body.rstrip("\n").split("\n") if not line.startswith("#")]
        diff = next((i for i, line in enumerate(lines) if re.match(r"killed by: ", line)), 0)
        killers = []
        while diff < len(lines) and lines[diff].startswith("killed by: "):
            killers.append(lines[diff][len("killed by: "):].split())
            diff += 1
        what, hunk = " ".join(lines[:diff - len(killers)]), lines[diff:]
        if not killers or not what or not any(line[:1] in "+-" for line in hunk if line) \
                or any(line[:1] not in "+- " for line in hunk if line):
            raise Broken(f"{source}: [{name}] is not: a sentence, killed by: ..., a hunk")
        yield Mutant(name, path, source, what, killers,
                     "".join(line[1:] + "\n" for line in hunk if line[:1] != "+"),
                     "".join(line[1:] + "\n" for line in hunk if line[:1] != "-"))


def mutants(pattern):
    lists = os.path.join(REPO, "tests/mutants")
    for path in sorted(glob.glob(f"{lists}/**/*.txt", recursive=True)):
        noun = os.path.splitext(os.path.relpath(path, lists))[0]
        source = noun if "/" in noun else f"sched/{noun}"
        folder = "perf" if noun.startswith("reference/") else "lib"
        with open(path, encoding="utf-8") as f:
            for mutant in parse(f.read(), f"{folder}/{source}.c",
                                os.path.relpath(path, REPO)):
                if re.search(pattern, title(mutant)):
                    yield mutant


def title(mutant):
    noun = mutant.source.split("/", 1)[1].removeprefix("sched/").removesuffix(".c")
    return f"{noun}.{mutant.name}"


def mutated(mutant):
    with open(os.path.join(REPO, mutant.source), encoding="utf-8") as f:
        text = f.read()
    n = text.count(mutant.old)
    if n != 1 or mutant.old == mutant.new:
        raise Broken(f"no longer applies: its lines are {n} times in {mutant.source}")
    return text.replace(mutant.old, mutant.new)


# --- compiling --------------------------------------------------------------------------------

class Build:
    """The objects of a build, and the commands that compiled them."""

    def __init__(self, folder):
        self.folder = os.path.abspath(folder)
        with open(os.path.join(self.folder, "compile_commands.json"), encoding="utf-8") as f:
            self.commands = json.load(f)
        self.shared, self.lock = {}, threading.Lock()

    def objects(self, target):
        """(object, source, flags) of all objects of a target of meson."""
        found = [c for c in self.commands if c["output"].startswith(target + ".p/")]
        if not found:
            raise Broken(f"{target} is not in this build")
        for command in found:
            words = shlex.split(command["command"])
            for option in ("-MQ", "-MF", "-o", "-c"):
                at = words.index(option)
                del words[at:at + 2]
            words.remove("-MD")
            yield command["output"], os.path.join(self.folder, command["file"]), words

    def link(self, target):
        """
        The arguments after the objects in a target's link command: options and libraries. The
        layers' archives replace the shared library, whose functions would not call the mutant's.
        """
        layers = ["-Wl,--start-group", *sorted(glob.glob("lib/libnj_*.a", root_dir=self.folder)),
                  "-Wl,--end-group"]
        return [each for word in self.link_words(target)
                for each in ([*layers, *self.libraries(word)] if LIBRARY.match(word) else [word])]

    def link_words(self, target):
        command = subprocess.run(["ninja", "-C", self.folder, "-t", "commands", "-s", target],
                                 capture_output=True, text=True, check=True).stdout
        words = shlex.split(command)
        return [word for word in words[words.index("-o") + 2:]
                if not word.startswith(target + ".p/")]

    def libraries(self, target):
        """The system's libraries that this library is linked with."""
        return [word for word in self.link_words(target)
                if word.startswith(("-l", "-pthread", "/usr/lib"))]

    def run(self, *command):
        done = subprocess.run(command, cwd=self.folder, capture_output=True, text=True,
                              errors="replace")
        if done.returncode:
            error = re.search(r".*(error:|undefined|multiple|cannot find).*", done.stderr)
            raise Broken(f"does not compile: {error[0] if error else done.stderr}")

    def once(self, name, compile_it):
        """Objects that several mutants share are compiled by the first."""
        with self.lock:
            if name not in self.shared:
                self.shared[name] = compile_it()
            return self.shared[name]


def has(source, mutant):
    """Is `source` the mutated file, or does it include that file?"""
    with open(source, encoding="utf-8") as f:
        return source.endswith(f"/{mutant.source}") or \
            f'#include "{mutant.source.split("/", 1)[1]}"' in f.read()


class Program:
    """A target of meson with a mutant, in its own folder below the build."""

    def __init__(self, build, mutant, target, name, extra=(), options=()):
        self.build, self.extra, self.options = build, list(extra), list(options)
        self.mutant = mutant
        self.layer = "/".join(mutant.source.split("/")[:2])
        self.folder = os.path.join(build.folder, "mutants", title(mutant), name)
        self.source = os.path.join(self.folder, mutant.source.split("/", 1)[1])
        self.path = os.path.join(self.folder, "program")
        shutil.rmtree(self.folder, ignore_errors=True)
        os.makedirs(os.path.dirname(self.source))
        with open(self.source, "w", encoding="utf-8") as f:
            f.write(mutated(mutant))
        objects = [self.compiled(*of) for of in self.sources(target)]
        libraries = ["-Wl,--start-group", *LIBRARIES, "-Wl,--end-group", *SYSTEM, *self.extra]
        if self.layer not in ("lib/sched", "lib/strategy", "perf/reference"):
            libraries = build.link(target)
        build.run("cc", *self.options, "-o", self.path, *objects, *libraries)

    def sources(self, target):
        found = list(self.build.objects(target))
        if not any(has(source, self.mutant) for _, source, _ in found):
            library = REFERENCE if self.layer == "perf/reference" else \
                f"lib/libnj_{os.path.basename(self.layer)}.a"
            found += [of for of in self.build.objects(library) if has(of[1], self.mutant)]
        return found

    def compiled(self, name, source, words):
        """Compiles without warnings, with the mutant's folder first in the include path."""
        if has(source, self.mutant):
            if source.endswith(f"/{self.mutant.source}"):
                source = self.source
            first = next(i for i, word in enumerate(words) if word.startswith("-I"))
            return self.compile(self.folder, name, source,
                                [*words[:first], f"-I{self.folder}", *words[first:]])
        if not self.options:
            return os.path.join(self.build.folder, name)
        shared = os.path.join(self.build.folder, "mutants", "shared")
        return self.build.once(name, lambda: self.compile(shared, name, source, words))

    def compile(self, folder, name, source, words):
        path = os.path.join(folder, name.replace("/", "_"))
        os.makedirs(folder, exist_ok=True)
        self.build.run(*words, *self.options, "-w", "-c", source, "-o", path)
        return path


# --- killing ----------------------------------------------------------------------------------

def ran(*command, longest=LONGEST, **more):
    """(exit status, or None after a timeout, output)"""
    program = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                               errors="replace", env=os.environ | more, start_new_session=True)
    try:
        text, _ = program.communicate(timeout=longest)
    except subprocess.TimeoutExpired:
        os.killpg(program.pid, signal.SIGKILL)  # Criterion runs each test in its own process
        program.communicate()
        return None, ""
    return program.returncode, text


def explore(build, mutant, *worlds):
    program = Program(build, mutant, "tests/explore/nj-explore", "explore")
    status, text = ran(program.path, " ".join(worlds), "quick")
    found = re.search(r"^explore: (.*)", text, re.M)
    return found[1] if status == 1 and found else None


def criterion(build, mutant, name, test, longest):
    program = Program(build, mutant, f"tests/unit_{name}", "unit", extra=["-lcriterion"])
    return ran(program.path, "--filter", f"*/{test}", "-j1", longest=longest)


def unit(build, mutant, name, test="*"):
    status, text = criterion(build, mutant, name, test, LONGEST)
    found = re.search(r"^nightjar: .*: (assertion failed: .*)", text, re.M) or \
        re.search(r"^\[.*----.*\] \S+:\d+: (Assertion .*|Unexpected signal .*)", text, re.M)
    return found[1] if status == 1 and found else None


def hang(build, mutant, name, test):
    status, _ = criterion(build, mutant, name, test, HANG)
    return f"not done after {HANG} s" if status is None else None


def race(build, mutant):
    plain = os.path.join(REPO, "tests", "support", "plain")
    program = RaceProgram(build, mutant, "tests/unit_strategy_stress", "race",
                          options=["-fsanitize=thread", "-I", plain])
    for seed in range(1, RACES + 1):
        _, text = ran(program.path, NJ_TEST_SEED=str(seed))
        if "ThreadSanitizer: data race" in text and "produce" in text:
            return f"data race, with seed {seed}"
    return None


def simulator(build, mutant, name, *arguments):
    program = Program(build, mutant, f"tests/sim/{name}", "sim")
    return ran(program.path, *arguments)


def sim(build, mutant, seeds, *options):
    status, text = simulator(build, mutant, "nj-sim", "--seeds", seeds, "-j", "1", *options)
    found = re.search(r"^(seed \d+ failed: .*)", text, re.M)
    return found[1] if status == 1 and found else None


def cold(build, mutant):
    status, text = simulator(build, mutant, "nj-sim-cold")
    found = re.search(r"^ +(rate .*)", text, re.M)
    return found[1] if status == 1 and found else None


def fuzz(build, mutant, target):
    program = Program(build, mutant, f"tests/fuzz/replay_{target}", "fuzz")
    status, text = ran(program.path, os.path.join(REPO, "tests", "fuzz", "corpus", target))
    found = re.search(r"^nightjar: .*: (.*)", text, re.M)
    return found[1] if status == -signal.SIGABRT and found else None


def e2e(build, mutant, test):
    program = Program(build, mutant, "app/nightjar/nightjar", "e2e")
    _, text = ran(sys.executable, "-m", "tests.e2e.run", "--child", os.devnull, test,
                  longest=5 * LONGEST, NJ_SERVER=program.path,
                  NJ_BUILD=os.path.relpath(build.folder, REPO))
    found = re.search(r"nightjar: .* crashed: (.*)", text)
    return found[1] if found else None


class RaceProgram(Program):
    """A program with all of lib/strategy: ThreadSanitizer has to see all synchronisation."""

    def sources(self, target):
        found = list(super().sources(target))
        known = {os.path.realpath(source) for _, source, _ in found}
        steps = [word for word in found[0][2] if word == "-DNJ_SCHED_POINTS"]
        return found + [(name, source, words + steps)
                        for name, source, words in self.build.objects("lib/libnj_strategy.a")
                        if os.path.realpath(source) not in known]


# Where a killer is: its target of ninja, and its own files.
PROGRAMS = {
    "explore": lambda *_: ("tests/explore/nj-explore", ["tests/explore"]),
    "unit": lambda name, *_: (f"tests/unit_{name}", [f"tests/unit/{name}.c"]),
    "hang": lambda name, *_: (f"tests/unit_{name}", [f"tests/unit/{name}.c"]),
    "sim": lambda *_: ("tests/sim/nj-sim", ["tests/sim"]),
    "cold": lambda *_: ("tests/sim/nj-sim-cold", ["tests/sim"]),
    "fuzz": lambda target, *_: (f"tests/fuzz/replay_{target}",
                                [f"tests/fuzz/{target}.c", f"tests/fuzz/corpus/{target}"]),
    "e2e": lambda test: ("app/nightjar/nightjar", [f"tests/e2e/{test.split('.')[0]}.py"]),
    "race": lambda *_: ("tests/unit_strategy_stress", ["tests/unit/strategy_stress.c"]),
}


def is_changed(mutant):
    """Has what decides about this mutant changed since it died?"""
    files = [mutant.source, mutant.list, "tests/mutants/mutants.py", "tests/support"]
    for name, *arguments in mutant.killers:
        files += PROGRAMS[name](*arguments)[1] if name in PROGRAMS else []
    return any(map(verified.is_changed, files))


def compile_programs(build, chosen):
    """The programs of all killers of these mutants."""
    targets = {PROGRAMS[name](*arguments)[0] for mutant in chosen
               for name, *arguments in mutant.killers if name in PROGRAMS}
    done = subprocess.run(["ninja", "-C", build, *sorted(targets)], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"mutants: ninja could not build the programs:\n{done.stdout[-2000:]}")


KILLERS = {"explore": explore, "unit": unit, "hang": hang, "race": race, "sim": sim, "cold": cold,
           "fuzz": fuzz, "e2e": e2e}


def judge(build, mutant):
    """(did all programs kill the mutant, message)"""
    messages, began = [], time.monotonic()
    try:
        for name, *arguments in mutant.killers:
            if name not in KILLERS:
                raise Broken(f"killed by: {name} is none of {', '.join(KILLERS)}")
            found = KILLERS[name](build, mutant, *arguments)
            if not found:
                return False, f"SURVIVES {' '.join([name, *arguments])}"
            messages.append(f"{name}: {found}")
    except Broken as broken:
        return False, str(broken)
    return True, f"{'; '.join(messages)} ({time.monotonic() - began:.1f} s)"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("-j", type=int, default=os.cpu_count(), help="number of mutants at a time")
    parser.add_argument("--changed", action="store_true",
                        help="only mutants whose files changed since tests/mutants/verified")
    parser.add_argument("build")
    parser.add_argument("pattern", nargs="?", default="",
                        help="a regular expression in [LAYER/]NOUN.NAME")
    options = parser.parse_args()
    build, killed = Build(options.build), 0
    found = list(mutants(options.pattern))
    chosen = [mutant for mutant in found if not options.changed or is_changed(mutant)]
    if chosen:
        compile_programs(options.build, chosen)
    with concurrent.futures.ThreadPoolExecutor(options.j) as pool:
        for mutant, (dead, text) in zip(chosen, pool.map(lambda m: judge(build, m), chosen)):
            killed += dead
            print(f"{title(mutant)}: {mutant.what}\n    {text}", flush=True)
    if len(chosen) < len(found):
        print(f"{len(found) - len(chosen)} mutants died at commit {verified.commit()[:8]}, and "
              "their files have not changed since")
    print(f"{killed} of {len(chosen)} mutants killed")
    return 0 if found and killed == len(chosen) else 1


if __name__ == "__main__":
    sys.exit(main())
