# SPDX-License-Identifier: BSD-3-Clause
"""`./dev run` as its user sees it: from the ordinary machine, and ended in every way there is."""
import glob
import json
import os
import re
import select
import signal
import socket
import subprocess
import tempfile
import time
import unittest

from tests.netlab.reaper import name_of, pids_in
from tests.netlab.limits import time_limit
from tests.netlab.world import REPO, until

PLAIN_BUILD = "start"
WITHOUT_SANITIZERS = True  # the playground always runs a release build


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def traces(pid):
    """What a run of that pid has outside its own memory."""
    return [path for folder in ("/run/netns", "/run", "/var/run/dpdk")
            for path in glob.glob(f"{folder}/njrun-{pid}*")]


class Playground(unittest.TestCase):
    def start(self, *args, port=None):
        self.port = port or free_port()
        process = subprocess.Popen(
            [f"{REPO}/dev", "run", "--port", str(self.port), *args], cwd="/",
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            start_new_session=True)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def wait_for_url(self, process):
        self.text, give_up = "", time.monotonic() + time_limit()
        url = f"http://127.0.0.1:{self.port}/"
        while not re.search(r"^  \S+ top --socket .*\n", self.text, re.M):
            left = max(0, give_up - time.monotonic())
            self.assertTrue(select.select([process.stdout], [], [], left)[0],
                            f"too late: {self.text}")
            chunk = os.read(process.stdout.fileno(), 4096)
            self.assertTrue(chunk, f"it ended: {self.text}")
            self.text += chunk.decode()
        self.assertIn(f"  curl {url}\n", self.text)
        return url

    def test_examples(self):
        process = self.start("--examples")
        url = self.wait_for_url(process)
        self.assertEqual(b"Hello from a nightjar.\n", self.curl(f"{url}hello").stdout)
        self.assertEqual(b"That took 5 ms.\n", self.curl(f"{url}slow?ms=5").stdout)
        self.assertIn(b"<title>nightjar</title>", self.curl(url).stdout)
        process.send_signal(signal.SIGINT)
        self.assertEqual(0, process.wait(time_limit()))

    def test_tls(self):
        tls_port = free_port()
        process = self.start("--tls", "--tls-port", str(tls_port))
        self.wait_for_url(process)
        command = re.search(rf"^  (curl --cacert \S+ https://localhost:{tls_port}/)\n", self.text,
                            re.M).group(1)
        done = subprocess.run([*command.split(), "-sSw", "%{http_version}"], capture_output=True,
                              timeout=time_limit())
        self.assertIn(b"<title>nightjar</title>", done.stdout, done.stderr)
        self.assertTrue(done.stdout.endswith(b"2"))
        process.send_signal(signal.SIGINT)
        self.assertEqual(0, process.wait(time_limit()))

    def test_options_of_the_server(self):
        """They and the printed command are all it takes to see a limit; paths are the caller's."""
        with tempfile.NamedTemporaryFile("w", suffix=".conf") as policy:
            policy.write("[class slow]\npath = /10MiB.bin\nrequest_rate = 2MiB/s\n")
            policy.flush()
            os.chmod(policy.name, 0o644)  # the server is user nobody
            process = self.start("--", "--rate", "50MiB/s", "--config", policy.name.lstrip("/"))
            self.wait_for_url(process)
        look = ["dpdk-telemetry.py", "-f", f"njrun-{process.pid}"]
        self.assertIn(f"  {' '.join(look)} ", self.text)
        self.assertNotIn("warning", self.text, "of CPUs that we chose ourselves")
        self.assertNotIn("req/s", self.text, "a live line is for terminals")
        told = subprocess.run(look, input="/nightjar/limits\n", capture_output=True, text=True,
                              timeout=time_limit())
        limits = json.loads(told.stdout.splitlines()[-1])["/nightjar/limits"]
        self.assertEqual("50MiB/s", limits["server"]["rate"])
        self.assertEqual("2MiB/s", limits["class_slow"]["request_rate"])
        top = re.search(r"^  (\S+) top (--socket \S+) ", self.text, re.M)
        told = subprocess.run([os.path.join("/", top[1]), "ctl", *top[2].split(), "limits"],
                              capture_output=True, text=True, timeout=time_limit())
        self.assertRegex(told.stdout, r"\bslow\b.*\b2MiB/s", told.stderr)
        process.send_signal(signal.SIGINT)
        self.assertEqual(0, process.wait(time_limit()))

    def curl(self, *args):
        return subprocess.run(["curl", "-sS", *args], timeout=time_limit(), capture_output=True)

    def test_serves_and_ends_in_every_way(self):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL):
            with self.subTest(signal=number.name):
                process = self.start()
                url = self.wait_for_url(process)
                self.assertIn(b"<title>nightjar</title>", self.curl(url).stdout)
                self.assertTrue(traces(process.pid))
                process.send_signal(number)
                status = process.wait(time_limit())
                self.assertEqual(-number if number == signal.SIGKILL else 0, status)
                until("nothing left behind", lambda: not traces(process.pid))

    def test_big_downloads_and_many_connections(self):
        process = self.start("--root", ".")
        url = self.wait_for_url(process)
        self.assertEqual(404, int(self.curl("-o/dev/null", "-w%{http_code}", url + "x").stdout))
        process.send_signal(signal.SIGINT)
        process.wait(time_limit())

        process = self.start()
        url = self.wait_for_url(process)
        size = self.curl("-o/dev/null", "-w%{size_download}", url + "1GiB.bin").stdout
        self.assertEqual(1 << 30, int(size))
        clients = [subprocess.Popen(
            ["curl", "-sS", "--http2-prior-knowledge", "-o/dev/null", "-w%{size_download}",
             url + "10MiB.bin"], stdout=subprocess.PIPE) for _ in range(100)]
        for client in clients:
            self.assertEqual(10 << 20, int(client.communicate(timeout=time_limit())[0]))
        process.send_signal(signal.SIGINT)
        self.assertEqual(0, process.wait(time_limit()))

    def test_wrong_arguments_are_told_before_anything_is_built(self):
        for wrong in (["--bogus"], ["folder"], ["--root", "/nowhere"], ["--lcores", "0"]):
            with self.subTest(wrong=wrong):
                process = self.start(*wrong)
                out, _ = process.communicate(timeout=time_limit())
                self.assertEqual(2, process.returncode)
                self.assertNotIn(b"building", out)

    def test_wrong_options_of_the_server(self):
        process = self.start("--", "--bogus")
        out, _ = process.communicate(timeout=time_limit())
        self.assertEqual(2, process.returncode, out)
        self.assertIn(b"--bogus: there is no such option", out)
        self.assertIn(b"ended before it was ready: exit status 2", out)
        self.assertEqual([], traces(process.pid))

    def test_a_server_that_is_killed(self):
        process = self.start()
        self.wait_for_url(process)
        servers = [pid for pid in pids_in(f"njrun-{process.pid}") if name_of(pid) == "nightjar"]
        self.assertEqual(1, len(servers))
        os.kill(servers[0], signal.SIGKILL)
        out, _ = process.communicate(timeout=time_limit())
        self.assertEqual(1, process.returncode, out)
        self.assertIn(b"dev: the server ended by itself: killed by SIGKILL", out)
        until("nothing left behind", lambda: not traces(process.pid))

    def test_a_taken_port_is_said_in_one_line(self):
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            process = self.start(port=taken.getsockname()[1])
            out, _ = process.communicate(timeout=time_limit())
        lines = out.decode().splitlines()  # nothing was built before
        self.assertEqual(1, len(lines), out)
        self.assertIn(f"port {self.port}", lines[0])
        self.assertEqual(1, process.returncode)
        self.assertEqual([], traces(process.pid))
