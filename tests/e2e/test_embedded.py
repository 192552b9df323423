# SPDX-License-Identifier: BSD-3-Clause
"""A program that starts, runs, stops and frees servers in its own main loop with one EAL."""
import contextlib
import hashlib
import os
import re
import select
import signal
import subprocess
import unittest

from tests.netlab.case import fill_site
from tests.netlab.h2client import Client
from tests.netlab.limits import time_limit
from tests.netlab.world import (PREFIX_BITS, SERVER_ADDR, Failed, World, lcore_args,
                                server_path, until)

CYCLES = 25
GOOD = "[class slow]\npath = /slow/\nrequest_rate = 1MiB/s\n"
BAD = "[class slow]\nnonsense = 1\n"


def figures(line):
    """{name: number} of "name=number ..." """
    return {name: int(n) for name, n in re.findall(r"(\S+)=(\d+)", line)}


class Program:
    """A running nightjar-test-embedded. It reads commands and prints one line as answer to each."""

    def __init__(self, world, policy, log, eal, variables):
        env = dict(os.environ) | dict(variables)
        env.setdefault("ASAN_OPTIONS", "exitcode=99")
        env.setdefault("UBSAN_OPTIONS", "halt_on_error=1:print_stacktrace=1:exitcode=99")
        env.setdefault("LSAN_OPTIONS", f"suppressions={os.path.dirname(__file__)}/../lsan.supp:"
                                       "print_suppressions=0")
        self.errors = open(f"{world.scratch}/errors", "w+b")
        self.process = subprocess.Popen(
            ["ip", "netns", "exec", world.server_ns, server_path("nightjar-test-embedded"),
             f"{SERVER_ADDR}/{PREFIX_BITS}", world.root, policy, log, *eal,
             "--file-prefix", world.name],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors, env=env, bufsize=0,
            start_new_session=True)
        self.rest = b""

    def said(self):
        self.errors.seek(0)
        return self.errors.read().decode(errors="replace")[-8000:]

    def ask(self, line):
        """Sends a command. Returns the line that the program answers."""
        self.process.stdin.write(line.encode() + b"\n")
        while b"\n" not in self.rest:
            if not select.select([self.process.stdout], [], [], time_limit())[0]:
                raise Failed(f"no answer to {line} within {time_limit():.0f} s\n{self.said()}")
            data = os.read(self.process.stdout.fileno(), 65536)
            if not data:
                raise Failed(f"the program ended at {line}: {self.process.wait(time_limit())}\n"
                             f"{self.said()}")
            self.rest += data
        answer, _, self.rest = self.rest.partition(b"\n")
        return answer.decode()

    def end(self):
        """Its exit status."""
        self.process.stdin.close()
        try:
            return self.process.wait(time_limit())
        finally:
            self.process.stdout.close()

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait(time_limit())
        with contextlib.suppress(OSError):
            self.process.stdin.close()
        self.process.stdout.close()
        self.errors.close()


class Embedded(unittest.TestCase):
    def start(self, link="veth", lcores=2, eal=None, **variables):
        """Starts the program. It does not start its server yet."""
        self.world = World(link, lcores=lcores)
        self.world.eal = eal or self.world.eal
        self.addCleanup(self.world.close)
        self.world.root = os.path.join(self.world.scratch, "site")
        os.mkdir(self.world.root)
        self.sums = fill_site(self.world.root)
        self.policy = os.path.join(self.world.scratch, "policy.conf")
        self.log = os.path.join(self.world.scratch, "access.log")
        self.write_policy(GOOD)
        self.world.make_namespaces()
        self.world.reaper.will_make("prefix", self.world.name)
        self.program = Program(self.world, self.policy, self.log, self.world.eal, variables)
        self.addCleanup(self.program.close)
        return self.program

    def write_policy(self, text):
        with open(self.policy, "w") as f:
            f.write(text)

    def serve(self):
        self.assertEqual("serves mask cpus", self.program.ask("start"), self.program.said())
        if self.world.link == "tap":
            self.world.address_client()

    def client(self):
        client = Client(self.world.connect())
        self.addCleanup(client.close)
        return client

    def get(self, path):
        client = self.client()
        status, _, body = client.response(client.request(path))
        client.close()
        self.assertEqual(200, status)
        return body

    def finish(self):
        self.assertEqual("stopping", self.program.ask("stop"))
        self.assertEqual("ended success, freed success", self.program.ask("end"),
                         self.program.said())

    def cycle(self):
        """Starts, uses, stops and frees a server. Returns the resources still in use."""
        self.serve()
        client = self.client()
        for path, expected, found in (("/200KiB", 200, self.sums["200KiB"]), ("/none", 404, None)):
            status, _, body = client.response(client.request(path))
            self.assertEqual(expected, status)
            self.assertIn(found, (None, hashlib.sha256(body).hexdigest()))
        self.assertEqual("success", self.program.ask("reload"))
        status, _, body = client.response(client.request("/where"))
        self.assertRegex(body.decode(), r"^lcore [01]\n$")
        told = figures(self.program.ask("stats"))
        self.assertEqual((3, 2, 1, 1), (told["requests"], told["2xx"], told["4xx"],
                                        told["accepted"]))
        self.assertGreater(told["body"], 200 << 10)
        self.assertGreater(told["rx"], 10)
        self.assertGreater(told["tx"], 10)
        client.close()
        self.finish()
        return self.program.ask("resources")

    def live(self, n_lcores, n_lives):
        """After each server the same resources are in use as after the first."""
        first = self.cycle()
        for i in range(1, n_lives):
            self.assertEqual(first, self.cycle(), f"after {i + 1} servers")
        told = figures(self.program.ask("counts"))
        self.assertEqual((n_lcores * n_lives,) * 2, (told["init"], told["fini"]))
        self.assertEqual(0, told["errors"])
        self.assertGreaterEqual(told["infos"], 3 * n_lives)
        with open(self.log) as f:
            self.assertEqual(3 * n_lives, len(f.readlines()))
        self.assertEqual(0, self.program.end(), self.program.said())

    def test_many_lives(self):
        self.start(lcores=1)
        self.live(1, CYCLES)
        self.assertEqual("", self.program.said())
        self.assertFalse(os.path.exists(f"/var/run/dpdk/{self.world.name}"))

    def test_lives_on_two_lcores(self):
        self.start()
        self.live(2, 5)

    def test_a_tap_comes_back(self):
        self.start("tap", lcores=1)
        self.live(1, 4)

    def test_a_bond_comes_back_with_its_members(self):
        self.start("tap", eal=["--preset", "tap,iface=nj0", "--preset", "tap,iface=nj1",
                               "--preset", "bonding,mode=1,member=net_tap0,member=net_tap1",
                               *lcore_args(1)])
        self.live(1, 3)

    def test_a_program_that_initializes_the_eal(self):
        self.start(NJ_TEST_OWN_EAL="1")
        self.live(2, 2)

    def test_a_second_server_waits_for_the_end_of_the_first(self):
        self.start()
        self.serve()
        self.assertIn("start: a process runs one server at a time", self.program.ask("second"))
        self.assertEqual("run returned 1", self.program.ask("run"))
        self.assertEqual("cleaned up", self.program.ask("cleanup"), "which is refused")
        self.get("/one")
        self.finish()
        self.cycle()
        self.assertEqual(0, self.program.end(), self.program.said())

    def test_the_program_handles_signals(self):
        self.start()
        self.serve()
        for _ in range(2):
            before = figures(self.program.ask("counts"))["signals"]
            os.kill(self.program.process.pid, signal.SIGTERM)
            until("the signal is handled",
                  lambda: figures(self.program.ask("counts"))["signals"] == before + 1)
        self.get("/one")
        self.finish()
        self.assertEqual(0, self.program.end(), self.program.said())

    def test_a_bad_policy_is_an_error_and_the_old_one_stays(self):
        self.start()
        self.serve()
        self.write_policy(BAD)
        self.assertEqual("invalid argument, or not possible at this moment",
                         self.program.ask("reload"))
        self.assertGreater(figures(self.program.ask("counts"))["errors"], 0)
        self.get("/one")
        self.finish()
        self.assertIn("new: ", self.program.ask("start"))
        self.write_policy(GOOD)
        self.cycle()
        self.assertEqual(0, self.program.end(), self.program.said())

    def test_a_port_that_failed_to_open_can_be_used_again(self):
        self.start()
        self.assertEqual("mtu 9000", self.program.ask("mtu 9000"))
        self.assertRegex(self.program.ask("start"), "start: --mtu 9000: .* takes at most ")
        self.assertIn(", freed success", self.program.ask("end"))
        self.assertEqual("mtu 0", self.program.ask("mtu 0"))
        self.cycle()
        self.assertEqual(0, self.program.end(), self.program.said())

    def test_the_second_stop_ends_at_once(self):
        self.start()
        self.serve()
        client = self.client()
        client.request("/10MiB")  # the client does not read the response
        client.read()
        self.assertEqual("stopping", self.program.ask("stop"))
        self.finish()
        self.assertEqual(0, self.program.end(), self.program.said())

    def test_a_handler_that_does_not_return(self):
        for path in ("/stuck", "/stuck-inline"):
            with self.subTest(path=path):
                self.start()
                self.serve()
                client = self.client()
                client.request(path)
                until("the handler has begun",
                      lambda: figures(self.program.ask("counts"))["stuck"] == 1)
                self.assertEqual("stopping", self.program.ask("stop"))
                self.assertEqual("stopping", self.program.ask("stop"))
                self.assertEqual("ended timed out, freed timed out",
                                 self.program.ask("end"))
                self.assertIn("start: handlers of an earlier server did not return",
                              self.program.ask("start"))
                self.assertEqual("cleaned up", self.program.ask("cleanup"), "which is refused")
                self.assertEqual("released", self.program.ask("release"))
                self.program.process.kill()
                self.world.close()
