# SPDX-License-Identifier: BSD-3-Clause
"""
The live page of the management listener in Chromium, beside downloads by curl. With
NJ_PAGE_IMAGES=docs/images the screenshots go there, otherwise into the build folder, in `clients`.
"""
import functools
import os
import subprocess
import time

from tests.clients.remote import Chromium
from tests.e2e.test_management import write_token
from tests.netlab import management
from tests.netlab.case import ServerCase
from tests.netlab.world import BUILD, REPO, SERVER_ADDR, until

IMAGES = os.path.join(REPO, os.environ.get("NJ_PAGE_IMAGES", os.path.join(BUILD, "clients")))
AT, TOKEN = ("127.0.0.1", 9180), 32 * "w"
AXE = "axe-core@4.14.1"
KIB, MIB = 1 << 10, 1 << 20
BIG = 200 * MIB
SECONDS = 3  # of a measurement by a client
POLICY = """[server]
rate = 200Mbit/s

[class releases]
path = /releases/
rate = 16MiB/s
request_rate = 2MiB/s

[class video]
path = /video/
client_rate = 6MiB/s
"""


@functools.cache
def axe():
    folder = os.path.join(os.path.abspath(BUILD), "clients", "npm")
    os.makedirs(folder, exist_ok=True)
    subprocess.run(["npm", "install", "--no-audit", "--no-fund", "--prefix", folder, AXE],
                   check=True, stdout=subprocess.DEVNULL)
    with open(f"{folder}/node_modules/axe-core/axe.min.js", encoding="utf-8") as f:
        return f.read()


class Page(Chromium):
    def resize(self, width, height):
        self.remote.call("Emulation.setDeviceMetricsOverride", width=width, height=height,
                         deviceScaleFactor=1, mobile=False)

    def prefer(self, scheme):
        self.remote.call("Emulation.setEmulatedMedia",
                         features=[{"name": "prefers-color-scheme", "value": scheme}])

    def key(self, key):
        for kind in "keyDown", "keyUp":
            text = {"text": "\r"} if key == "Enter" and kind == "keyDown" else {}
            self.remote.call("Input.dispatchKeyEvent", type=kind, key=key, code=key, **text,
                             windowsVirtualKeyCode={"Tab": 9, "Enter": 13, "Escape": 27}[key])

    def type(self, selector, text):
        self.evaluate(f"(() => {{ const e = document.querySelector({selector!r}); e.focus(); "
                      "e.select && e.select(); })()")
        self.remote.call("Input.insertText", text=text)

    def click(self, selector):
        self.evaluate(f"document.querySelector({selector!r}).click()")

    def text(self, selector):
        return self.evaluate(f"document.querySelector({selector!r}).innerText")

    def wait(self, what, expression):
        until(what, lambda: self.evaluate(expression))

    def save(self, name):
        """A picture of the whole page."""
        self.remote.call("Emulation.setScrollbarsHidden", hidden=True)
        if not self.evaluate("document.querySelector('dialog[open]') !== null"):
            self.evaluate("document.activeElement.blur()")
        height = self.evaluate("document.documentElement.scrollHeight")
        width = self.evaluate("innerWidth")
        before = self.evaluate("innerHeight")
        self.resize(width, height)
        os.makedirs(IMAGES, exist_ok=True)
        with open(os.path.join(IMAGES, f"live-page-{name}.png"), "wb") as f:
            f.write(self.screenshot())
        self.resize(width, before)


class LivePage(ServerCase):
    policy = POLICY

    @classmethod
    def prepare(cls):
        world = cls.world
        world.serve_tls()
        world.scheme = "http"
        token = f"{world.scratch}/token"
        write_token(token, TOKEN)
        world.options += ["--management-listen", "127.0.0.1:9180", "--management-token", token]
        for name in "releases/debian-13.iso", "video/talk.webm":
            path = os.path.join(cls.root, name)
            os.mkdir(os.path.dirname(path))
            with open(path, "wb") as f:
                f.truncate(BIG)

    def open_page(self):
        page = Page(self.world, ())
        self.enterContext(page)
        page.resize(1280, 900)
        page.open("http://127.0.0.1:9180/")
        page.wait("it asks for a token", "document.querySelector('#token').open")
        self.check_axe(page)
        self.check_tab(page, "#token")
        page.type("#token-value", 32 * "\u00e4")
        page.key("Enter")
        page.wait("it says what a token is", "document.querySelector('#token').open && "
                  "document.querySelector('#token-text').innerText.includes('ASCII')")
        page.type("#token-value", TOKEN)
        page.key("Enter")
        page.wait("it is live", "document.querySelector('#link').dataset.state === 'live' && "
                  "document.querySelectorAll('#lcores tbody tr').length === 2")
        return page

    def check_axe(self, page):
        page.evaluate(axe())
        found = page.evaluate("axe.run().then((r) => r.violations.map((v) => [v.id, "
                              "v.nodes.map((n) => n.html + ' ' + n.failureSummary)]))")
        self.assertEqual([], found)

    def download(self, path, *options):
        curl = self.world.client_popen(
            "curl", "-sN", "--http2-prior-knowledge", *options, f"http://{SERVER_ADDR}/{path}",
            stdout=subprocess.PIPE)
        self.addCleanup(curl.stdout.close)
        self.addCleanup(curl.wait)
        self.addCleanup(curl.kill)
        return curl

    def bytes_per_s(self, curl):
        """What the client gets, in a time that begins with bytes that it gets."""
        fd = curl.stdout.fileno()
        os.read(fd, 1 << 16)
        n_bytes, start = 0, time.monotonic()
        while (now := time.monotonic()) < start + SECONDS:
            got = os.read(fd, 1 << 16)
            self.assertNotEqual(b"", got, "the download has ended")
            n_bytes += len(got)
        return n_bytes / (now - start)

    def test_a_day_at_the_page(self):
        page = self.open_page()
        page.wait("rates", "document.querySelectorAll('#lcores tbody td')[0].innerText !== '–'")
        self.assertEqual("All is well.", page.text("#problem-list"))
        page.save("idle")
        self.check_axe(page)

        client = self.client()
        for _ in range(200):
            self.assertEqual(200, client.get("/one")[0])
        curl = self.download("releases/debian-13.iso")
        for _ in range(2):
            self.drain(self.download("video/talk.webm"))
        page.wait("three transfers", "document.querySelectorAll('#transfers td.actions').length "
                  "=== 3")
        fast = self.bytes_per_s(curl)
        page.wait("its rate", "document.querySelector('#transfers').innerText.includes('MiB/s')")
        self.check_axe(page)
        self.check_tab(page)
        page.save("loaded")

        row = "[data-key='class releases'] button"
        page.click(f"#limits {row}")
        page.type("#limit-key", "")
        page.evaluate("""(() => { const e = document.querySelector('#limit-key');
            e.value = 'request_rate'; e.dispatchEvent(new Event('change')); })()""")
        self.assertEqual("2MiB/s", page.evaluate("document.querySelector('#limit-value').value"))
        page.type("#limit-value", "512KiB/s")
        self.check_axe(page)
        page.save("dialog")
        self.check_tab(page, "#limit")
        page.type("#limit-value", "512KiB/s")
        page.key("Enter")
        page.wait("it is said", "document.querySelector('#result').innerText !== ''")
        self.assertIn("is now request_rate 512KiB/s", page.text("#result"))
        slow = self.bytes_per_s(curl)  # what was on its way
        slow = self.bytes_per_s(curl)
        print(f"a client got {fast / KIB:.0f} KiB/s, and after a change on the page to 512 KiB/s "
              f"{slow / KIB:.0f} KiB/s")
        self.assertGreater(slow, 0.7 * 512 * KIB)
        self.assertLess(slow, 1.1 * 512 * KIB)
        self.assertGreater(fast, slow)
        page.wait("the page shows it", "document.querySelector('#limits').innerText"
                  ".includes('request_rate 512KiB/s')")
        page.save("changed")

        page.prefer("dark")
        self.check_axe(page)
        page.save("dark")
        page.prefer("light")
        page.resize(375, 800)
        self.assertLessEqual(page.evaluate("document.documentElement.scrollWidth"), 375)
        self.check_axe(page)
        page.save("phone")
        page.resize(1280, 900)

        page.evaluate("[...document.querySelectorAll('#transfers tbody tr')].find((row) => "
                      "row.innerText.includes('debian')).querySelector('button').click()")
        self.assertIn("/releases/debian-13.iso", page.text("#confirm-text"))
        self.assertEqual("Cancel", page.evaluate("document.activeElement.innerText"))
        self.check_tab(page, "#confirm")
        page.click("#confirm-yes")
        self.drain(curl).wait()
        page.wait("two transfers", "document.querySelectorAll('#transfers td.actions').length "
                  "=== 2")
        page.evaluate("document.querySelectorAll('#transfers button')[1].click()")
        page.click("#confirm-yes")
        page.wait("no transfer", "document.querySelector('#transfers').innerText"
                  ".includes('No transfer runs.')")
        page.wait("the block", "document.querySelectorAll('#blocks button').length === 1")
        page.click("#blocks button")
        page.click("#confirm-yes")
        page.wait("no block", "document.querySelectorAll('#blocks button').length === 0")
        self.assertEqual([], [row for row in page.responses()
                              if not row[0].startswith(("http://127.0.0.1:9180/", "data:"))])

    def drain(self, curl):
        reader = subprocess.Popen(["cat"], stdin=curl.stdout, stdout=subprocess.DEVNULL)
        self.addCleanup(reader.wait)
        self.addCleanup(reader.kill)
        return curl

    def check_tab(self, page, dialog=None):
        """Each control, of the page or of an open dialog, gets the focus by the Tab key."""
        controls = ("[...document.querySelectorAll('a[href], button, input, select')]"
                    + (f".filter((e) => e.closest('{dialog}'))" if dialog
                       else ".filter((e) => !e.closest('dialog'))"))
        page.evaluate("document.activeElement.blur()")
        page.evaluate("window.njSeen = new Set(); document.addEventListener('focusin', (e) => "
                      "njSeen.add(e.target))")
        for _ in range(page.evaluate(f"{controls}.length") + 2):
            page.key("Tab")
        self.assertEqual([], page.evaluate(
            f"{controls}.filter((e) => !njSeen.has(e)).map((e) => e.outerHTML)"))

    def test_a_lost_server(self):
        page = self.open_page()
        page.evaluate("window.njFetch = fetch; window.fetch = () => "
                      "Promise.reject(new Error('lost')); aborter.abort()")
        page.wait("it is lost", "document.querySelector('main.stale') !== null")
        self.assertIn("The server does not answer: values are of 2", page.text("#problem-list"))
        self.assertEqual(0, page.evaluate(
            "document.querySelectorAll('td.actions button:enabled').length"))
        self.check_axe(page)
        page.evaluate("post('unblock', '198.18.0.9', 'done')")
        self.assertIn("No answer: it may have been done", page.text("#result"))
        for status, body, want in (
                (200, '{"ended":0,"lcores_missing":1}', "It may not have been done: 1 lcore has"),
                (500, '{"error":"the change was made, but"}', "the change was made, but"),
                (400, '{"error":"bad"}', "Nothing has changed: bad")):
            page.evaluate(f"window.fetch = async (path) => path === 'api/v1/events' ? "
                          f"Promise.reject(new Error('lost')) : "
                          f"new Response({body!r}, {{status: {status}}})")
            page.evaluate("post('transfers/end', '1', 'done')")
            self.assertTrue(page.text("#result").startswith(want), page.text("#result"))
        page.evaluate("window.fetch = njFetch")
        page.wait("it is back", "document.querySelector('main.stale') === null && "
                  "document.querySelector('#problem-list').innerText === 'All is well.'")

    def test_the_policy_of_the_page(self):
        answer = management.ask(AT, "GET", "/", namespace=self.world.server_ns)
        policy = answer.headers["Content-Security-Policy"]
        self.assertIn("default-src 'none'", policy)
        self.assertNotIn("unsafe", policy)
        self.assertNotRegex(answer.text, r"\son\w+=|style=\"|https?://")
