# SPDX-License-Identifier: BSD-3-Clause
"""
Chromium and Firefox ESR: a page of 100 assets, which is also looked at in a screenshot, and files
byte for byte, on TLS: over h2 as they are, over HTTP/1.1 if h2 is disabled in the browser. The
screenshots are in the build folder, in `clients`.
"""
import base64
import hashlib
import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import unittest

from tests.clients.page import CELLS_SCRIPT, colour, N_ASSETS, write_page
from tests.clients.remote import Chromium, Firefox
from tests.e2e.test_playground import free_port
from tests.netlab.case import ServerCase
from tests.netlab.limits import time_limit
from tests.netlab.world import BUILD, REPO, SERVER_ADDR, Failed

NAME = "nightjar.test"
BIG_BYTES = 20 << 20
WITHOUT_H2 = ("--disable-http2",)  # of Chromium
FIREFOX_WITHOUT_H2 = {"network.http.http2.enabled": False}
CONNECTIONS_MAX = 16  # of HTTP/1.1: browsers have 6 at a time

SUMS_SCRIPT = """Promise.all(%s.map(async (name) => {
    const response = await fetch(name, {cache: "no-store"});
    const sum = await crypto.subtle.digest("SHA-256", await response.arrayBuffer());
    const hex = [...new Uint8Array(sum)].map((byte) => byte.toString(16).padStart(2, "0"));
    return [name, hex.join("")];
})).then(Object.fromEntries)"""

# Pixels of a picture of the page, in the left upper corners of the cells.
SHOT_SCRIPT = """new Promise((resolve, reject) => {
    const image = new Image();
    image.onerror = reject;
    image.onload = () => {
        const canvas = document.createElement("canvas");
        [canvas.width, canvas.height] = [image.width, image.height];
        const context = canvas.getContext("2d");
        context.drawImage(image, 0, 0);
        resolve([...document.querySelectorAll("#grid > *")].map((cell) => {
            const {x, y} = cell.getBoundingClientRect();
            return [...context.getImageData(x + 4, y + 4, 1, 1).data].slice(0, 3);
        }));
    };
    image.src = "data:image/png;base64,%s";
})"""


def key_hash(cert):
    """The SHA-256 of a certificate's public key, in base64."""
    key = subprocess.run(["openssl", "x509", "-in", cert, "-noout", "-pubkey"], check=True,
                         capture_output=True).stdout
    der = subprocess.run(["openssl", "pkey", "-pubin", "-outform", "DER"], input=key, check=True,
                         capture_output=True).stdout
    return base64.b64encode(hashlib.sha256(der).digest()).decode()


def save(name, picture):
    folder = os.path.join(BUILD, "clients")
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, name + ".png"), "wb") as f:
        f.write(picture)


class BrowserCase(ServerCase):
    @classmethod
    def prepare(cls):
        cls.world.serve_tls()
        data = random.Random(2).randbytes(BIG_BYTES)
        with open(os.path.join(cls.root, "20MiB"), "wb") as f:
            f.write(data)
        names = write_page(cls.root)
        cls.sums["20MiB"] = hashlib.sha256(data).hexdigest()
        for name in names:
            with open(os.path.join(cls.root, name), "rb") as f:
                cls.sums[name] = hashlib.sha256(f.read()).hexdigest()
        cls.page = names

    def chromium(self, *options):
        return Chromium(self.world, (
            f"--host-resolver-rules=MAP {NAME} {SERVER_ADDR}",
            f"--ignore-certificate-errors-spki-list={key_hash(self.world.certificate[0])}",
            *options))


class Pages(BrowserCase):
    def browse(self, browser, url, protocol="h2"):
        browser.open(url)
        wanted = [list(colour(i)) for i in range(N_ASSETS)]
        self.assertEqual(wanted, browser.evaluate(CELLS_SCRIPT))
        with self.subTest("network log"):
            self.assertEqual(sorted((url + name.removeprefix("index.html"), 200, protocol)
                                    for name in self.page),
                             sorted(row for row in browser.responses()
                                    if not row[0].startswith("data:")))
        with self.subTest("screenshot"):
            picture = browser.screenshot()
            save(f"{type(browser).__name__.lower()}-{protocol.replace('/', '')}", picture)
            self.assertEqual(wanted, browser.evaluate(
                SHOT_SCRIPT % base64.b64encode(picture).decode()))
        with self.subTest("files"):
            self.assertEqual(self.sums, browser.evaluate(SUMS_SCRIPT % json.dumps([*self.sums])))
            protocols = browser.evaluate(
                'performance.getEntriesByType("resource").map((entry) => entry.nextHopProtocol)')
            self.assertEqual({protocol}, set(protocols))
            self.assertGreaterEqual(len(protocols), N_ASSETS + len(self.sums))
        self.assertLessEqual(self.counted("tls_handshakes") +
                             self.counted("tls_handshakes_resumed"),
                             4 if protocol == "h2" else CONNECTIONS_MAX)
        self.assertEqual(0, self.counted("conn_h1" if protocol == "h2" else "conn_h2"))
        self.assertGreaterEqual(self.counted("requests"), len(self.page) + len(self.sums))

    def test_chromium(self):
        with self.chromium() as browser:
            self.browse(browser, f"https://{NAME}/")

    def test_chromium_without_h2(self):
        with self.chromium(*WITHOUT_H2) as browser:
            self.browse(browser, f"https://{NAME}/", "http/1.1")

    def test_firefox(self):
        with Firefox(self.world) as browser:
            self.browse(browser, f"https://{SERVER_ADDR}/")

    def test_firefox_without_h2(self):
        with Firefox(self.world, FIREFOX_WITHOUT_H2) as browser:
            self.browse(browser, f"https://{SERVER_ADDR}/", "http/1.1")


class NoHttp1(BrowserCase):
    """--no-http1 concerns a browser only if it does not offer h2."""
    options = ("--no-http1",)

    def test_chromium(self):
        with self.chromium() as browser:
            browser.open(f"https://{NAME}/")
            self.assertEqual({(200, "h2")}, {row[1:] for row in browser.responses()
                                             if not row[0].startswith("data:")})

    def test_chromium_without_h2(self):
        with self.chromium(*WITHOUT_H2) as browser, \
                self.assertRaisesRegex(Failed, "net::ERR_"):
            browser.open(f"https://{NAME}/")
        self.assertGreater(self.counted("tls_failed_alpn"), 0)


class Host:
    """What Browser needs of a World, outside namespaces."""

    def __init__(self, scratch):
        self.scratch = scratch

    @staticmethod
    def client_popen(*command, **more):
        return subprocess.Popen(command, **more)


class Playground(unittest.TestCase):
    def test_the_page_of_dev_run_opens(self):
        port, tls_port = free_port(), free_port()
        run = subprocess.Popen(
            [sys.executable, "-m", "tests.netlab.playground", "--tls", "--port", str(port),
             "--tls-port", str(tls_port)], cwd=REPO, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True)
        self.addCleanup(run.stdout.close)
        self.addCleanup(run.wait)
        self.addCleanup(run.kill)
        printed = ""
        while "dpdk-telemetry.py" not in printed:  # the last line; the runner has a deadline
            line = run.stdout.readline()
            self.assertTrue(line, printed)
            printed += line
        url = f"https://localhost:{tls_port}/"
        self.assertRegex(printed, rf"(?m)^  {url} ")
        cert = re.search(r"curl --cacert (\S+)", printed).group(1)
        with tempfile.TemporaryDirectory(
                ignore_cleanup_errors=True) as scratch, Chromium(Host(scratch), (
                f"--ignore-certificate-errors-spki-list={key_hash(cert)}",)) as browser:
            browser.open(url)
            self.assertEqual("nightjar", browser.evaluate("document.title"))
            self.assertEqual({(200, "h2")}, {row[1:] for row in browser.responses()
                                             if not row[0].startswith("data:")})
            save("playground", browser.screenshot())
        run.send_signal(signal.SIGINT)
        self.assertEqual(0, run.wait(time_limit()))
