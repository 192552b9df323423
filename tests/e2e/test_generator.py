# SPDX-License-Identifier: BSD-3-Clause
"""
The counters of nightjar-load equal those of the server. Over memif they equal nightjar's to the
request and the byte. With nghttpd as server they equal those of h2load. The latency of a request
begins at the time at which the request is due.
"""
import os
import re
import signal
import subprocess
import unittest

from tests.netlab import generator
from tests.netlab.case import fill_site
from tests.netlab.generator import Pair
from tests.netlab.limits import time_limit
from tests.netlab.world import CLIENT_ADDR, PREFIX_BITS, SERVER_ADDR, Failed, World, until

SIZES = {"/one": 1, "/200KiB": 200 << 10}
MINE = generator.PROGRAM


class OnPair(unittest.TestCase):
    """Memif gives both ends the same number of queues: both need the same number of lcores."""
    lcores, tls = 1, False

    @classmethod
    def setUpClass(cls):
        cls.pair = Pair(lcores=cls.lcores)
        cls.addClassCleanup(cls.pair.close)
        if cls.tls:
            cls.pair.serve_tls()
        cls.pair.root = os.path.join(cls.pair.scratch, "site")
        os.mkdir(cls.pair.root)
        fill_site(cls.pair.root)
        cls.pair.make_namespaces()
        cls.pair.start()

    def counted(self, *options, **more):
        """The generator's results, and the increments of the server's counters."""
        before = self.pair.server.stats()
        found = self.pair.load(*options, **more)
        until("the server has freed the connections",
              lambda: not self.pair.server.stats()["connections"])
        after = self.pair.server.stats()
        return found, {name: after[name] - before[name] for name in before}

    def agree(self, found, grown, n_bytes=None):
        mine = found["in_all"]
        self.assertEqual(mine["asked"], grown["requests"])
        self.assertEqual(mine["done"], mine["asked"])
        self.assertEqual(mine["status_2"], mine["done"])
        self.assertEqual(mine["body_bytes"], grown["body_bytes"])
        self.assertEqual(mine["connected"], grown["tcp_accepted"])
        self.assertEqual((0, 0, 0, 0), tuple(mine[k] for k in ("reset", "timeout", "lost",
                                                               "broken")))
        if n_bytes is not None:
            self.assertEqual(mine["done"] * n_bytes, mine["body_bytes"])


class OverTls(OnPair):
    """Both ends have nightjar's record layer; the handshakes are OpenSSL's."""
    tls = True

    def test_a_number_of_requests(self):
        found, grown = self.counted("-c", 7, "-m", 5, "-n", 701, urls=["/one"])
        self.agree(found, grown, SIZES["/one"])
        self.assertEqual(7, grown["tls_handshakes"])
        self.assertEqual(0, grown["tls_bad_record"])

    def test_downloads(self):
        found, grown = self.counted("-c", 2, "-m", 4, "-n", 24, urls=["/200KiB"])
        self.agree(found, grown, SIZES["/200KiB"])
        self.assertLess(found["in_all"]["body_bytes"], grown["tls_tx_bytes"])

    def test_uploads(self):
        found, grown = self.counted("-c", 2, "-m", 2, "-n", 12, "-u", "100KiB", urls=["/one"])
        self.assertEqual(12, found["in_all"]["done"])  # 405
        self.assertEqual((0, 0), (grown["tls_bad_record"], found["in_all"]["broken"]))


class OverHttp1(OnPair):
    """The counts of both ends are equal over HTTP/1.1, too."""

    def test_a_number_of_requests(self):
        found, grown = self.counted("--http1", "-c", 7, "-n", 701, urls=["/one"])
        self.agree(found, grown, SIZES["/one"])
        self.assertEqual("http/1.1", found["protocol"])
        self.assertEqual(7, grown["conn_h1"])

    def test_pipelined_requests(self):
        found, grown = self.counted("--http1", "-c", 3, "-m", 8, "-n", 900, "--in-turn",
                                    urls=["/one", "/200KiB", "/one"])
        self.agree(found, grown)
        self.assertEqual(300 * (SIZES["/200KiB"] + 2), found["in_all"]["body_bytes"])

    def test_a_rate(self):
        found, grown = self.counted("--http1", "-c", 10, "-r", 500, "-d", "1s", "-w", "100ms",
                                    urls=["/one"])
        self.agree(found, grown, 1)
        asked = found["after"]["asked"] - found["before"]["asked"]
        self.assertLessEqual(asked, 500 * found["seconds"] + found["before"]["unsent"] + 30)

    def test_uploads(self):
        """405 comes before the body; its connection may end, and another one is opened."""
        found, grown = self.counted("--http1", "-c", 2, "-n", 12, "-u", "100KiB", urls=["/one"])
        mine = found["in_all"]
        self.assertEqual((12, 12), (mine["done"], mine["status_4"]))
        self.assertEqual(mine["connected"], grown["tcp_accepted"])
        self.assertEqual((0, 0), (mine["lost"], mine["broken"]))

    def test_the_last_request_of_each_connection(self):
        found, grown = self.counted("--http1", "-c", 3, "-n", 60, "-H", "connection: close",
                                    urls=["/one"])
        self.agree(found, grown, 1)
        self.assertEqual(60, found["in_all"]["closed"])


class OverHttp1AndTls(OnPair):
    tls = True

    def test_requests_and_downloads(self):
        for url, n in (("/one", 701), ("/200KiB", 24)):
            found, grown = self.counted("--http1", "-c", 4, "-n", n, urls=[url])
            self.agree(found, grown, SIZES[url])
            self.assertEqual((4, 0), (grown["conn_h1"], grown["tls_bad_record"]))


class AgainstOurs(OnPair):
    plain_build = "speed"
    without_sanitizers = True

    def test_a_number_of_requests(self):
        found, grown = self.counted("-c", 7, "-m", 5, "-n", 3001, urls=["/one"])
        self.agree(found, grown, SIZES["/one"])
        self.assertEqual(3001, found["in_all"]["done"])
        self.assertEqual(3001, found["latency_ns"]["count"])
        self.assertEqual(7, found["in_all"]["connected"])

    def test_for_a_time(self):
        found, grown = self.counted("-c", 4, "-m", 8, "-d", "2s", "-w", "100ms",
                                    urls=["/200KiB"])
        self.agree(found, grown, SIZES["/200KiB"])
        measured = found["after"]["done"] - found["before"]["done"]
        self.assertLess(0, measured)
        self.assertLess(measured, found["in_all"]["done"])

    def test_one_connection(self):
        found, grown = self.counted("-n", 500, urls=["/one"])
        self.agree(found, grown, 1)
        latency = found["latency_ns"]
        self.assertLessEqual(latency["min"], latency["p50"])
        self.assertLessEqual(latency["p50"], latency["p99"])
        self.assertLessEqual(latency["p99.99"], latency["max"])
        self.assertLessEqual(found["first_byte_ns"]["max"], latency["max"])

    def test_paths_by_weight(self):
        found, grown = self.counted("-c", 3, "-m", 4, "-n", 4000, urls=["/200KiB", "/one=19"])
        self.agree(found, grown)
        large = (found["in_all"]["body_bytes"] - 4000) // (SIZES["/200KiB"] - 1)
        self.assertAlmostEqual(1 / 20, large / 4000, delta=0.015)  # the seed is always the same

    def test_paths_in_turn(self):
        """The generator requests all paths equally often. It ignores their weights."""
        found, grown = self.counted("-c", 3, "-m", 4, "-n", 300, "--in-turn",
                                    urls=["/200KiB", "/one=19", "/one"])
        self.agree(found, grown)
        self.assertEqual(100 * (SIZES["/200KiB"] + 2), found["in_all"]["body_bytes"])

    def test_an_error_response_is_a_response(self):
        found, _ = self.counted("-n", 100, urls=["/nothing", "/one"])
        self.assertEqual(100, found["in_all"]["done"])
        self.assertEqual(100, found["in_all"]["status_2"] + found["in_all"]["status_4"])
        self.assertLess(20, found["in_all"]["status_4"])

    def test_several_addresses(self):
        with_three = [CLIENT_ADDR, "198.18.0.5", "198.18.0.6"]
        found, grown = self.counted("-c", 9, "-n", 900, urls=["/one"], addresses=with_three)
        self.agree(found, grown, 1)

    def test_taking_turns(self):
        """Many connections with few outstanding requests in total."""
        found, grown = self.counted("-c", 60, "-m", 2, "--in-flight", 4, "-n", 600, urls=["/one"])
        self.agree(found, grown, 1)
        self.assertEqual(600, found["in_all"]["done"])
        found, grown = self.counted("-c", 60, "--in-flight", 4, "-d", "500ms", "-w", "100ms",
                                    urls=["/one"])
        self.agree(found, grown, 1)
        self.assertLessEqual(found["before"]["under_way"], 4)  # without turns they are 60
        self.assertLess(0, found["before"]["under_way"])

    def test_a_rate(self):
        found, grown = self.counted("-c", 10, "-m", 4, "-r", 500, "-d", "2s", "-w", "100ms",
                                    urls=["/one"])
        self.agree(found, grown, 1)
        asked, late = (found["after"][k] - found["before"][k] for k in ("asked", "unsent"))
        self.assertAlmostEqual(500 * found["seconds"], asked + late, delta=30)
        self.assertAlmostEqual(asked - found["before"]["unsent"], found["latency_ns"]["count"],
                               delta=30)
        self.assertGreater(asked, 500)  # late requests: the machine was busy

    def test_latency_begins_when_a_request_is_due(self):
        """The server is stopped for a while in the middle. In a closed loop one request waits; here
        all requests wait that are due in that time."""
        rate, pid = 500, self.pair.server.process.pid
        load = self.pair.load_popen("-r", rate, "-d", "4s", "-w", "0s", "--timeout", "20s",
                                    urls=["/one"])
        self.addCleanup(os.kill, pid, signal.SIGCONT)
        lines = iter(load.stderr.readline, "")
        next(line for line in lines if line.startswith("measuring"))
        os.kill(pid, signal.SIGSTOP)
        next(line for line in lines if " late" in line)
        os.kill(pid, signal.SIGCONT)
        found = generator.finish(load)
        self.assertLess(0.5e9, found["latency_ns"]["max"])
        self.assertEqual(found["in_all"]["asked"], found["in_all"]["done"])
        self.assertLess(0.1e9, found["latency_ns"]["p90"], "10 % of the requests waited")

    def test_output_files(self):
        csv, js = (os.path.join(self.pair.scratch, name) for name in ("l.csv", "l.json"))
        load = self.pair.load_popen("-n", 200, "--csv", csv, "--json", js, urls=["/one"])
        out, err = load.communicate(timeout=time_limit())
        self.assertEqual(0, load.returncode, err)
        self.assertIn("answered", out)
        with open(csv) as f:
            rows = [line.split(",") for line in f.read().splitlines()]
        self.assertEqual(["up_to_ns", "count", "share"], rows[0])
        self.assertEqual(200, sum(int(row[1]) for row in rows[1:]))
        self.assertEqual("1.000000000", rows[-1][2])
        load = self.pair.load_popen("-n", 1, "--csv", "/nowhere/at/all", urls=["/one"])
        self.assertIn("/nowhere/at/all: No such file", load.communicate(timeout=time_limit())[1])
        self.assertEqual(1, load.returncode)

    def test_connections_are_refused(self):
        with self.assertRaisesRegex(Failed, "1: nightjar-load: it does not begin: 0 of 3 "
                                    "connections are open after .* were refused"):
            finished = self.pair.client_popen(*[
                word.replace(SERVER_ADDR, SERVER_ADDR + ":81") for word in generator.command(
                    self.pair.device("client"), self.pair.prefix,
                    ["-q", "-c", 3, "--timeout", "1s"], ["/one"])],
                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            generator.finish(finished)


class OnTwoLcores(OnPair):
    lcores = 2

    def test_two_lcores(self):
        found, grown = self.counted("-c", 9, "-m", 3, "-n", 2001, urls=["/one"],
                                    lcores=2)
        self.agree(found, grown, 1)
        self.assertEqual((2, 2001), (found["lcores"], found["in_all"]["done"]))


class Uploads(unittest.TestCase):
    def test_every_byte_arrives(self):
        with Pair(program="nightjar-examples") as pair:
            found = pair.load("-c", 3, "-m", 4, "-n", 60, "-u", "300KiB", urls=["/echo"])
        self.assertEqual((60, 60), (found["in_all"]["done"], found["in_all"]["status_2"]))
        self.assertEqual(60 * 300 * 1024, found["in_all"]["upload_bytes"])
        self.assertEqual(60 * 300 * 1024, found["in_all"]["body_bytes"], "an echo server")


class Kernel(World):
    """A server on the kernel's TCP, the generator on the other end of a veth pair. `command` ends
    with the folder that it serves."""

    def __init__(self, *command):
        super().__init__("veth")
        self.command = command
        self.root = os.path.join(self.scratch, "site")
        os.mkdir(self.root)
        fill_site(self.root)

    def start(self):
        ip = lambda ns, *args: self.run_in(ns, "ip", *args)  # noqa: E731
        ip(self.client_ns, "addr", "flush", "dev", "nj0")
        ip(self.client_ns, "addr", "add", f"{SERVER_ADDR}/{PREFIX_BITS}", "dev", "nj0")
        self.peer = self.client_popen(*self.command, self.root, stderr=subprocess.DEVNULL)
        until("it listens", lambda: self.run_in(self.client_ns, "ss", "-tlnH").stdout.strip())
        self.reaper.will_make("prefix", self.name)

    def mine(self, *options, urls):
        load = subprocess.Popen(
            ["ip", "netns", "exec", self.server_ns, *generator.command(
                "--vdev=net_af_packet0,iface=nj0", self.name, options, urls)],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        return generator.finish(load)

    def close(self):
        super().close()
        self.peer.wait(time_limit())


class BesideH2load(unittest.TestCase):
    """h2load and nightjar-load count the same for the same requests to the same server."""
    plain_build = "speed"
    without_sanitizers = True

    @classmethod
    def setUpClass(cls):
        cls.world = Kernel("nghttpd", "--no-tls", "80", "-d")
        cls.addClassCleanup(cls.world.close)
        cls.world.make_namespaces()
        cls.world.start()

    def h2load(self, *options, url):
        done = self.world.client("h2load", *map(str, options), f"http://{SERVER_ADDR}{url}")
        self.assertEqual(0, done.returncode, done.stderr)
        data = re.search(r"(\d+)\) data", done.stdout)[1]
        return int(re.search(r"(\d+) succeeded", done.stdout)[1]), int(data)

    def test_requests_and_bytes(self):
        for url in ("/one", "/200KiB"):
            theirs, n_bytes = self.h2load("-c", 5, "-m", 6, "-n", 1000, url=url)
            mine = self.world.mine("-c", 5, "-m", 6, "-n", 1000, urls=[url])["in_all"]
            self.assertEqual((theirs, n_bytes), (mine["status_2"], mine["body_bytes"]))

    def test_rate(self):
        """Neither program exceeds the rate. Without one they send many times as much."""
        theirs = self.h2load("-c", 4, "-m", 1, "--rps", 100, "-D", 3, url="/one")[0]
        mine = self.world.mine("-c", 4, "-r", 400, "-d", "3s", "-w", "0s", urls=["/one"])
        for n_requests in theirs, mine["in_all"]["asked"]:
            self.assertGreater(n_requests, 0)
            self.assertLess(n_requests, 3 * 400 * 1.1)


class BesidePython(unittest.TestCase):
    """Python's server speaks HTTP/1.0: it closes each connection after a response."""
    plain_build = "speed"
    without_sanitizers = True

    def test_closed_connections_are_opened_again(self):
        with Kernel("/usr/bin/python3", "-m", "http.server", "80", "-d") as world:
            found = world.mine("--http1", "-c", 3, "-n", 60, urls=["/one", "/200KiB", "/nothing"])
        mine = found["in_all"]
        self.assertEqual("http/1.1", found["protocol"])
        self.assertEqual((60, 60, 60), tuple(mine[k] for k in ("asked", "done", "closed")))
        self.assertIn(mine["connected"], range(60, 64), "it may end before the last are opened")
        self.assertEqual(60, mine["status_2"] + mine["status_4"])
        self.assertEqual((0, 0), (mine["lost"], mine["broken"]))


class Arguments(unittest.TestCase):
    def said(self, *options):
        done = subprocess.run([MINE, "--no-huge", "--", *options], capture_output=True, text=True,
                              timeout=time_limit())
        self.assertEqual("", done.stdout)
        self.assertEqual(2, done.returncode)
        return done.stderr

    def test_help(self):
        done = subprocess.run([MINE, "--help"], capture_output=True, text=True,
                              timeout=time_limit())
        self.assertEqual(0, done.returncode)
        self.assertIn("usage: nightjar-load", done.stdout)

    def test_presets(self):
        for preset, words in ("list", "ixgbe  "), ("tap,help", "#: driver net_tap"):
            done = subprocess.run([MINE, "--preset", preset], capture_output=True, text=True,
                                  timeout=time_limit())
            self.assertEqual((0, ""), (done.returncode, done.stderr))
            self.assertIn(words, done.stdout)

    def test_a_device_that_is_not_there(self):
        done = subprocess.run([MINE, "--preset", "ixgbe,pci=ffff:ff:1f.7", "--addr",
                               "198.18.0.1/24", "http://198.18.0.2/"], capture_output=True,
                              text=True, timeout=time_limit())
        self.assertEqual(1, done.returncode)
        self.assertIn("ffff:ff:1f.7: no such PCI device (lspci -D lists them)", done.stderr)

    def test_error_messages(self):
        own, url = ("--addr", "198.18.0.1/24"), "http://198.18.0.2/"
        for options, words in (
                ((), "no URL"),
                ((url,), "--addr is missing"),
                ((*own, "ftp://198.18.0.2/"), "expected http://"),
                ((*own, "http://exa%6dple/"), "expected a name or an address"),
                ((*own, "http:///one"), "expected a name or an address"),
                ((*own, "http://198.18.0.2:0/"), "a port from 1"),
                ((*own, "http://198.18.0.2:+80/"), "a port from 1"),
                ((*own, "http://[2001:db8::2]/"), "none of IPv6"),
                ((*own, "-c", "40000", url), "--connections 40000: an address has ports for"),
                ((*own, "http://[2001:db8::2/"), "expected a name or an address"),
                ((*own, url, "index.html"), "begins with /"),
                ((*own, url, "/a b"), "write it as %HH"),
                ((*own, url, "/a=0"), "a weight from 1"),
                ((*own, "-c", "0", url), "--connections 0: expected a number from 1"),
                ((*own, "--in-flight", "4", "-r", "9", url), "--rate and --in-flight"),
                ((*own, "--in-flight", "0", url), "--in-flight 0: expected a number"),
                ((*own, "-m", "x", url), "--streams x: expected a number"),
                ((*own, "-d", "soon", url), "--duration soon: expected a time"),
                ((*own, "-r", "-1", url), "--rate -1: expected"),
                ((*own, "-u", "0", url), "--upload 0: expected a size"),
                ((*own, "-H", "nothing", url), "'name: value'"),
                ((*own, "-H", "a b: c", url), "not a valid name of a field"),
                ((*own, "--vlan", "5000", url), "--vlan 5000"),
                ((*own, "--threads", "2", url), "--threads 2: there are only 1 connections"),
                ((*own, "-t", "3", "-c", "3", "--in-flight", "2", url), "fewer than threads, 3"),
                (("--preset", "tap", url), "--addr is missing"),
                ((*own, "--preset", "taps", url), "did you mean tap?"),
                ((*own, "--preset", "tap,mtu=9", url), 'there is no key "mtu"'),
                ((*own, "--preset", "ixgbe", url), "pci= is missing"),
                ((*own, "--preset", "ixgbe,pci=0x3", url), "pci=0x3: expected an address"),
                ((*own, "--preset", "tap", "--preset", "null", url), "comes from one port"),
                ((*own, "--bogus", url), "--bogus: no such option"),
                ((*own, url, "-c"), "-c: a value is missing")):
            with self.subTest(options=options):
                self.assertIn(words, self.said(*options))
