# SPDX-License-Identifier: BSD-3-Clause
"""
Commands of gdb for programs with libnightjar, running or in a core dump:

  nj fibers      handlers that wait on stacks of their own, over all lcores
  nj bt N ...    the backtrace of one of them; further arguments are those of `backtrace`

gdb loads this file with an installed libnightjar.so; for another one, or for libnightjar.a:
`source nightjar-gdb.py`. It reads private structs, so the library needs its debug symbols (Debian:
libnightjar3-dbgsym). Nothing in the program is changed.
"""
import re

import gdb
import gdb.unwinder

PARKED, WOKEN = "NJ__FIBER_PARKED", "NJ__FIBER_WOKEN"
PUBLIC = re.compile(r"nj_(?:sleep|await\w*|call_on_worker|request_\w+|response_\w+)")
BOTTOM = "body"  # the first function on each stack: lib/sched/fiber.c
NO_SYMBOLS = ("libnightjar has no debug symbols here. Debian: install libnightjar3-dbgsym of the "
              "same version, from the folder of its package; or build with -g")


def context_on_x86_64(first):
    """Where jump_fcontext() of Boost.Context leaves registers: their offsets from the context, and
    that of the stack pointer's value. Some builds keep a canary before them."""
    places = {name: first + 8 * i
              for i, name in enumerate(("r12", "r13", "r14", "r15", "rbx", "rbp", "rip"))}
    return places, first + 8 * len(places)


def context_on_aarch64():
    places = {f"x{i}": 0x40 + 8 * (i - 19) for i in range(19, 31)}
    return places | {"pc": 0xa0}, 0xb0


# By architecture: the stack pointer's name, the program counter's, the layouts.
CONTEXTS = {"i386:x86-64": ("rsp", "rip", (context_on_x86_64(8), context_on_x86_64(16))),
            "aarch64": ("sp", "pc", (context_on_aarch64(),))}


def read_word(address):
    return int.from_bytes(gdb.selected_inferior().read_memory(address, 8).tobytes(), "little")


def is_in_function(pc):
    block = gdb.block_for_pc(pc)
    while block and not block.function:
        block = block.superblock
    return block is not None


class Fiber:
    """A handler that waits. `fiber` is a struct nj_fiber, `thread` its lcore's."""

    def __init__(self, fiber, thread):
        self.fiber, self.thread = fiber, thread

    def registers(self):
        """{name: value} where it continues."""
        at = int(self.fiber["context"])
        name = gdb.selected_inferior().architecture().name()
        if name not in CONTEXTS:
            raise gdb.GdbError(f"nj bt does not know where fibers keep registers on {name}")
        sp, pc, layouts = CONTEXTS[name]
        for places, end in layouts:
            found = {register: read_word(at + offset) for register, offset in places.items()}
            if is_in_function(found[pc]):
                return found | {sp: at + end}
        raise gdb.GdbError(NO_SYMBOLS)

    def route(self):
        route = self.fiber["class_of"]
        return route["name"].string() if route else "?"

    def request(self):
        """Method and path."""
        try:
            exchange = self.fiber["arg"].cast(gdb.lookup_type("struct nj_exchange").pointer())
            head = exchange["req"]["block"]["bytes"].address.cast(
                gdb.lookup_type("struct nj__stored_head").pointer())
            return " ".join(view["p"].string("iso-8859-1", length=int(view["n_bytes"]))
                            for view in (head["method"], head["path"]))
        except gdb.error:
            return "?"

    def waits_for(self, frames):
        if str(self.fiber["state"]) == WOKEN:
            return "nothing: it continues next"
        calls = [name for name in frames if name and PUBLIC.fullmatch(name)]
        timer = self.fiber["timer"]
        end = ""
        if timer["node"]["next"] != timer["node"].address or is_linked(self.fiber["node"]):
            left = int(timer["deadline"]) - int(self.fiber["all"]["now"])
            end = f", {left / 1e6:.1f} ms left" if left > 0 else ", due"
        return (calls[0] + "()" if calls else "?") + end


def is_linked(node):
    return int(node["next"]) not in (0, int(node.address))


def thread_name(thread):
    return f"thread {thread.num} ({thread.name})" if thread.name else f"thread {thread.num}"


def parked():
    """All of them, in the order of threads and stacks. Needs the symbols of libnightjar."""
    found, chosen = [], gdb.selected_thread()
    if not chosen:
        raise gdb.GdbError("no program runs here, and there is no core dump")
    try:
        gdb.lookup_type("struct nj_fibers")
        gdb.lookup_type("struct nj_exchange")
    except gdb.error as error:
        raise gdb.GdbError(NO_SYMBOLS) from error
    try:
        for thread in sorted(gdb.selected_inferior().threads(), key=lambda t: t.num):
            thread.switch()
            try:
                fibers = gdb.parse_and_eval("nj__current.home")
                n = int(fibers["n_max"]) if fibers else 0
            except gdb.error as error:
                if "thread-local" in str(error):
                    raise gdb.GdbError(f"{error} (nj needs libthread_db for that)") from error
                continue  # no thread of the library
            for i in range(n):
                fiber = fibers["fiber"][i]
                if str(fiber["state"]) in (PARKED, WOKEN):
                    found.append(Fiber(fiber, thread))
    finally:
        chosen.switch()
    return found


class Unwinder(gdb.unwinder.Unwinder):
    """While `registers` is set, the caller of the innermost frame is what waits there."""

    def __init__(self):
        super().__init__("nightjar-fiber")
        self.registers = None

    def __call__(self, pending):
        if self.registers is None or pending.level() != 0:
            return None
        sp, pc, _ = CONTEXTS[pending.architecture().name()]
        # Below the stack of the fiber: gdb takes an inner frame at a higher address for an error.
        info = pending.create_unwind_info(FrameId(self.registers[sp] - 16, self.registers[pc]))
        for name, value in self.registers.items():
            like = pending.read_register(name)
            info.add_saved_register(name, gdb.Value(value).cast(like.type))
        return info


class FrameId:
    def __init__(self, sp, pc):
        self.sp, self.pc = gdb.Value(sp), gdb.Value(pc)


UNWINDER = Unwinder()


class Unwound:
    """`with Unwound(fiber):` the frames above the innermost one are those of the fiber."""

    def __init__(self, fiber):
        self.fiber = fiber

    def __enter__(self):
        self.chosen, self.frame = gdb.selected_thread(), gdb.selected_frame().level()
        registers = self.fiber.registers()
        self.fiber.thread.switch()
        UNWINDER.registers = registers
        gdb.invalidate_cached_frames()
        return self

    def __exit__(self, *_):
        UNWINDER.registers = None
        gdb.invalidate_cached_frames()
        self.chosen.switch()
        gdb.execute(f"frame {self.frame}", to_string=True)

    def names(self):
        """The functions that called each other, the innermost first."""
        found, frame = [], gdb.newest_frame().older()
        while frame and len(found) < 1000:
            found.append(frame.name())
            if frame.name() == BOTTOM:
                break
            frame = frame.older()
        return found


class Nj(gdb.Command):
    """Handlers of nightjar that wait: `nj fibers`, `nj bt N`."""

    def __init__(self):
        super().__init__("nj", gdb.COMMAND_STACK, prefix=True)


class NjFibers(gdb.Command):
    """List the handlers that wait on stacks of their own: number, thread, route, request, and the
call that waits."""

    def __init__(self):
        super().__init__("nj fibers", gdb.COMMAND_STACK)

    def invoke(self, argument, from_tty):
        fibers = parked()
        for number, fiber in enumerate(fibers):
            with Unwound(fiber) as unwound:
                waits = fiber.waits_for(unwound.names())
            print(f"{number}  {thread_name(fiber.thread)}  {fiber.route()}  [{fiber.request()}]  "
                  f"waits for {waits}")
        if not fibers:
            print("no handler waits on a stack of its own")


class NjBt(gdb.Command):
    """Print the backtrace of a handler that waits: nj bt NUMBER [ARGUMENTS OF BACKTRACE]
`nj fibers` has the numbers. With -full: and the local variables."""

    def __init__(self):
        super().__init__("nj bt", gdb.COMMAND_STACK)

    def invoke(self, argument, from_tty):
        words, fibers = argument.split(), parked()
        if not words or not words[0].isdecimal() or int(words[0]) >= len(fibers):
            raise gdb.GdbError(f"nj bt NUMBER: 0 to {len(fibers) - 1}, see nj fibers" if fibers
                               else "no handler waits on a stack of its own")
        fiber = fibers[int(words[0])]
        print(f"{thread_name(fiber.thread)}, route {fiber.route()} [{fiber.request()}]")
        with Unwound(fiber) as unwound:
            n = len(unwound.names()) + 1
            text = gdb.execute(" ".join(("backtrace", *words[1:], str(n))), to_string=True)
        kept = re.search(r"^#1\s.*", text, re.M | re.S)
        for line in kept[0].rstrip().split("\n") if kept else ():
            if not line.startswith("(More stack frames"):
                match = re.match(r"#(\d+) +(.*)", line)
                print(f"#{int(match[1]) - 1:<3}{match[2]}" if match else line)

    def complete(self, text, word):
        return gdb.COMPLETE_NONE


gdb.unwinder.register_unwinder(None, UNWINDER, replace=True)
Nj()
NjFibers()
NjBt()
