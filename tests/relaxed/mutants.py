# SPDX-License-Identifier: BSD-3-Clause
"""
Memory orders that are too weak, and a lost wake-up in futex_park.c: nj-relaxed must find each of
them. Arguments: the build folder, nj-relaxed.

A mutant is (file, text that occurs in it once, replacement, name of the world that finds it,
fault). The mutated file replaces the real one, with the commands that built nj-relaxed.

Weaker orders that are not faults, so that no test can find them:
  strategy_state.c, seats.c
      The acquire half of a swap that does not make the caller the producer: dispatch, undo, leave,
      pause, leave_to_seated, call. The release half of a swap that neither gives production away
      nor requests it for the caller: undo, retake, join, call. Releases of other threads stay in
      the release sequence.
  reserved_threads.c
      All of `count`, including STOPPED: threads that must see STOPPED acquire n_wakes, which
      stop() releases afterwards. The store of FREE: a seat protects only itself; without it and
      without release and acquire in `count` a thread may search longer for a free seat, since the
      counted one becomes visible late. The acquire half of seat_change(): a task is read after
      the load in take().
  thread_strategy.c
      `stopped`: a thread that sees it only leaves; the thread that frees the strategy acquires
      `n_refs`.
"""
import concurrent.futures
import os
import re
import subprocess
import sys
import tempfile

from tests.relaxed import built

WORD, RESERVED = "lib/strategy/strategy_state.c", "lib/strategy/reserved_threads.c"
PARK, STRATEGY = "lib/base/futex_park.c", "lib/strategy/thread_strategy.c"
DUAL, SEATS = "perf/reference/dual.c", "perf/reference/seats.c"
ENTRIES = "perf/reference/entries.c"
ORDER = "memory_order_acq_rel"
LOAD_SEAT = "atomic_load_explicit(&seat->state, "
LOAD_WAKES = "atomic_load_explicit(&seat->n_wakes, "
LOAD_SLEEPER = "atomic_load_explicit(&d->n_wakes[seat], "
LOAD_REFS = "atomic_load_explicit(&s->n_refs, "
COUNT_WAKE = "atomic_fetch_add_explicit(n_wakes, WAKE_UNIT, memory_order_release)"
WAKE = "syscall(SYS_futex, n_wakes, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0)"


def swap(arguments, order, world, what, now="&now", file=WORD):
    """Gives one call of swap() another order."""
    return (file, f"swap(w, {now}, {arguments})",
            f"atomic_compare_exchange_strong_explicit(w, {now}, nj__state_pack({arguments}), "
            f"memory_order_{order}, memory_order_relaxed)", world, what)


DISPATCH = "state, send ? (uint32_t)NJ__RECRUIT_QUEUED : recruits"
ARRIVE = ("idle ? NJ__STATE_PRODUCING : NJ__STATE_REPRODUCING,\n"
          "                 nj__state_recruit_mask(now) & ~(uint32_t)recruit")
REST = ("again ? NJ__STATE_PRODUCING : NJ__STATE_IDLE,\n"
        "                 nj__state_recruit_mask(now)")
LEAVE = "NJ__STATE_IDLE, send ? recruits | recruit : recruits"
RETAKE = ("idle ? NJ__STATE_PRODUCING : nj__state_production(now),\n"
          "                 nj__state_recruit_mask(now) & ~(uint32_t)NJ__RECRUIT_SURE")
PAUSE = "NJ__STATE_IDLE, nj__state_recruit_mask(now)"
RESUME = ("idle ? NJ__STATE_PRODUCING : NJ__STATE_REPRODUCING,\n"
          "                 nj__state_recruit_mask(now)")
SIT = ("again ? NJ__STATE_PRODUCING : NJ__STATE_IDLE,\n"
       "                 seat >= 0 ? recruits | (uint32_t)NJ__SEAT_BIT << seat : recruits")
LEAVE_TO_SEATED = ("leaves ? NJ__STATE_IDLE : nj__state_production(now),\n"
                   "                 recruits | NJ__RECRUIT_QUEUED")

MUTANTS = [
    (WORD, ORDER, "memory_order_relaxed", "one after the other", "all swaps relaxed"),
    (WORD, ORDER, "memory_order_acquire", "one after the other", "no swap releases"),
    (WORD, ORDER, "memory_order_release", "one after the other", "no swap acquires"),
    swap(DISPATCH, "acquire", "one dispatcher", "dispatch() does not release"),
    (WORD, f"if (swap(w, &now, {DISPATCH}))",
     "if (state == nj__state_production(now) && !send)\nreturn false;\n"
     f"if (swap(w, &now, {DISPATCH}))",
     "two dispatchers", "dispatch() does not swap where it changes nothing"),
    swap(ARRIVE, "acquire", "two producers", "arrive() does not release"),
    swap(ARRIVE, "release", "one after the other", "arrive() does not acquire"),
    swap(REST, "acquire", "one after the other", "rest() does not release"),
    swap(REST, "release", "two producers", "rest() does not acquire"),
    swap(LEAVE, "acquire", "epc", "leave() does not release"),
    swap(PAUSE, "acquire", "adaptive, nothing more", "pause() does not release"),
    swap(RETAKE, "release", "adaptive, no reserved thread", "retake() does not acquire"),
    swap(RESUME, "acquire", "epc, a task adds another", "resume() does not release"),
    swap(RESUME, "release", "epc", "resume() does not acquire"),
    swap("state, kept", "release", "dual", "join() does not acquire", now="now", file=SEATS),
    swap(SIT, "acquire", "dual, two stay", "sit() does not release", file=SEATS),
    swap(SIT, "release", "dual, two stay", "sit() does not acquire", file=SEATS),
    swap(LEAVE_TO_SEATED, "acquire", "dual", "leave_to_seated() does not release", file=SEATS),
    (DUAL, LOAD_SLEEPER + "memory_order_acquire", LOAD_SLEEPER + "memory_order_relaxed", "dual",
     "a sleeper reads its wake-ups without acquire"),
    (RESERVED, "is, next, memory_order_acq_rel,", "is, next, memory_order_acquire,",
     "reserved: one seat", "a task is handed over without release"),
    (RESERVED, LOAD_SEAT + "memory_order_acquire", LOAD_SEAT + "memory_order_relaxed",
     "reserved: one seat", "a task is taken without acquire"),
    (RESERVED, "uint32_t seen = " + LOAD_WAKES + "memory_order_acquire",
     "uint32_t seen = " + LOAD_WAKES + "memory_order_relaxed", "reserved: one seat",
     "wake-ups are read without acquire"),
    (RESERVED, "memory_order_seq_cst, memory_order_relaxed",
     "memory_order_acq_rel, memory_order_relaxed", "reserved: roused",
     "a thread begins to wait in no order with is_needed()"),
    (RESERVED, "state, memory_order_seq_cst", "state, memory_order_acquire", "reserved: roused",
     "rouse() searches the seats in no order with the request of its caller"),
    (PARK, COUNT_WAKE, COUNT_WAKE.replace("release", "relaxed"), "reserved: one seat",
     "unpark() does not release"),
    (PARK, WAKE, "(void)0", "reserved: one seat", "unpark() does not wake"),
    (STRATEGY, "&n, n + 1, memory_order_acquire", "&n, n + 1, memory_order_relaxed", "restarted",
     "hold() does not acquire"),
    (STRATEGY, "&s->n_refs, 1, memory_order_acq_rel", "&s->n_refs, 1, memory_order_acquire",
     "stopped", "drop() does not release"),
    (STRATEGY, "&s->n_refs, 1, memory_order_acq_rel", "&s->n_refs, 1, memory_order_release",
     "stopped", "drop() does not acquire"),
    (ENTRIES, LOAD_REFS + "memory_order_acquire", LOAD_REFS + "memory_order_relaxed", "restarted",
     "restart() does not acquire"),
    (ENTRIES, "&s->n_refs, 1, memory_order_release", "&s->n_refs, 1, memory_order_relaxed",
     "restarted", "restart() does not release"),
]


class Checker:
    def __init__(self, build, program):
        self.build = build
        self.commands = built.commands(build, program)

    def find(self, mutant):
        with tempfile.TemporaryDirectory() as folder:
            return self.find_in(folder, mutant)

    def find_in(self, folder, mutant):
        """The checker's message about a mutant, or None."""
        name, text, instead, world, _ = mutant
        obj, (source, command) = next((o, c) for o, c in self.commands.items()
                                      if c[0].endswith("/" + name))
        with open(source, encoding="utf-8") as f:
            original = f.read()
        if original.count(text) != 1:
            sys.exit(f"{name} has this text {original.count(text)} times, not once: {text}")
        mutated, out = os.path.join(folder, "mutated.c"), os.path.join(folder, "mutated.o")
        program = os.path.join(folder, "checker")
        with open(mutated, "w", encoding="utf-8") as f:
            f.write(original.replace(text, instead))
        self.run(*[mutated if os.path.realpath(os.path.join(self.build, word)) == source else
                   word.replace(obj, out) for word in command])  # -MF contains it as well
        self.run("c++", "-Wl,--wrap=syscall", "-o", program, out,
                 *[o for o in self.commands if o != obj])
        done = subprocess.run([program, world], capture_output=True, text=True, errors="replace")
        messages = re.findall(r"^(.*: run \d+: .*)$", done.stdout, re.M)
        return messages[-1] if done.returncode == 1 and messages else None

    def run(self, *words):
        subprocess.run(words, cwd=self.build, check=True)


def main():
    checker = Checker(*sys.argv[1:])
    lost = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for (name, *_, what), message in zip(MUTANTS, pool.map(checker.find, MUTANTS)):
            lost += not message
            print(f"{name}: {what}: {message or 'NOT FOUND'}")
    print(f"{len(MUTANTS) - lost} of {len(MUTANTS)} found")
    return 1 if lost else 0


if __name__ == "__main__":
    sys.exit(main())
