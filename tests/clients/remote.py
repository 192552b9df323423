# SPDX-License-Identifier: BSD-3-Clause
"""
Browsers under remote control, headless, in the clients' namespace of a World. Chromium speaks the
DevTools protocol over a pipe, Firefox WebDriver BiDi over a WebSocket (RFC 6455). Both exchange
JSON: commands with an `id`, results with the same `id`, events without one.
"""
import base64
import json
import os
import select
import socket
import struct
import subprocess
import tempfile

from tests.netlab.limits import time_limit
from tests.netlab.world import Failed, inside, until

ANSWER_SECONDS_MAX = time_limit()
BIDI_PORT = 9222

CHROMIUM_OPTIONS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--disable-dev-shm-usage", "--window-size=800,1000", "--remote-debugging-pipe")

# These preferences stop Firefox's own requests to Mozilla's servers: updates, telemetry, lists.
FIREFOX_PREFERENCES = {
    "app.update.disabledForTesting": True, "browser.shell.checkDefaultBrowser": False,
    "datareporting.policy.dataSubmissionEnabled": False, "network.captive-portal-service.enabled":
    False, "network.connectivity-service.enabled": False, "browser.safebrowsing.malware.enabled":
    False, "browser.safebrowsing.phishing.enabled": False, "services.settings.server": "data:,",
    "network.http.http3.enable": False, "toolkit.telemetry.enabled": False,
}


class Remote:
    """`read()` returns the next message, `write()` sends one."""

    def __init__(self, read, write):
        self.read, self.write = read, write
        self.n_commands, self.events = 0, []
        self.constant = {}  # is part of each command

    def call(self, method, **params):
        self.n_commands += 1
        number = self.n_commands
        self.write(json.dumps({"id": number, "method": method, "params": params} | self.constant))
        while True:
            message = json.loads(self.read())
            if "method" in message:
                self.events.append(message)
            elif message.get("id") == number:
                if "error" in message:
                    raise Failed(f"{method}: {message}")
                return message["result"]

    def wait_for(self, method):
        """The parameters of the next event of this name, which is removed."""
        while True:
            for event in self.events:
                if event["method"] == method:
                    self.events.remove(event)
                    return event["params"]
            message = json.loads(self.read())
            if "method" in message:
                self.events.append(message)

    def seen(self, method):
        return [event["params"] for event in self.events if event["method"] == method]


class Stream:
    """Bytes from a file descriptor, with a deadline."""

    def __init__(self, fd):
        self.fd, self.unread = fd, b""

    def more(self):
        if not select.select([self.fd], [], [], ANSWER_SECONDS_MAX)[0]:
            raise Failed(f"no answer of the browser within {ANSWER_SECONDS_MAX} s")
        data = os.read(self.fd, 1 << 20)
        if not data:
            raise Failed("the browser ended")
        self.unread += data

    def take(self, n):
        while len(self.unread) < n:
            self.more()
        data, self.unread = self.unread[:n], self.unread[n:]
        return data

    def take_until(self, end):
        pieces = []
        while end not in self.unread:
            pieces.append(self.unread)
            self.unread = b""
            self.more()
        last, self.unread = self.unread.split(end, 1)
        return b"".join(pieces) + last


class Browser:
    """A page in a browser of its own, with a new profile. A context manager: start() to close()."""

    def __init__(self, world, name):
        self.world = world
        self.profile = tempfile.mkdtemp(prefix=name + "-", dir=world.scratch)
        self.log = open(self.profile + ".log", "w+b")
        self.process = None

    def __enter__(self):
        try:
            self.start()
        except BaseException as error:
            self.close()
            raise Failed(f"{error}\n{self.log_text}") from error
        return self

    def __exit__(self, *_):
        self.close()

    def popen(self, *command, **more):
        environment = os.environ | {"HOME": self.profile, "XDG_RUNTIME_DIR": self.profile}
        self.process = self.world.client_popen(*command, stdin=subprocess.DEVNULL, stdout=self.log,
                                               stderr=self.log, env=environment, **more)

    def close(self):
        if self.process:
            self.process.kill()
            self.process.wait()
        self.log.seek(0)
        self.log_text = self.log.read().decode(errors="replace")[-4000:]
        self.log.close()


class Chromium(Browser):
    def __init__(self, world, options):
        super().__init__(world, "chromium")
        self.options = options
        self.pipe_ends = []

    def start(self):
        command_end, commands = os.pipe()
        answers, answer_end = os.pipe()
        self.pipe_ends = [commands, answers]
        self.popen(
            "bash", "-c", f'exec "$@" 3<&{command_end} 4>&{answer_end}', "bash", "chromium",
            *CHROMIUM_OPTIONS, f"--user-data-dir={self.profile}", *self.options, "about:blank",
            pass_fds=(command_end, answer_end))
        os.close(command_end)
        os.close(answer_end)
        stream = Stream(answers)
        self.remote = Remote(lambda: stream.take_until(b"\0"),
                             lambda text: os.write(commands, text.encode() + b"\0"))
        self.version = self.remote.call("Browser.getVersion")["product"]
        targets = self.remote.call("Target.getTargets")["targetInfos"]
        page = next(target for target in targets if target["type"] == "page")
        session = self.remote.call("Target.attachToTarget", targetId=page["targetId"],
                                   flatten=True)
        self.remote.constant = {"sessionId": session["sessionId"]}
        for domain in ("Page", "Network"):
            self.remote.call(f"{domain}.enable")

    def open(self, url):
        """Loads a page with all that it refers to."""
        self.remote.events.clear()
        done = self.remote.call("Page.navigate", url=url)
        if "errorText" in done:
            raise Failed(f"{url}: {done['errorText']}")
        self.remote.wait_for("Page.loadEventFired")

    def responses(self):
        """(URL, status, protocol) of each response since open()."""
        return [(event["response"]["url"], event["response"]["status"],
                 event["response"]["protocol"])
                for event in self.remote.seen("Network.responseReceived")]

    def evaluate(self, expression):
        """The value of a JavaScript expression, which may be a promise, as JSON."""
        done = self.remote.call("Runtime.evaluate", awaitPromise=True, returnByValue=True,
                                expression=expression)
        if "exceptionDetails" in done:
            raise Failed(f"{done['exceptionDetails']}")
        return done["result"].get("value")

    def screenshot(self):
        return base64.b64decode(self.remote.call("Page.captureScreenshot")["data"])

    def close(self):
        super().close()
        for fd in self.pipe_ends:
            os.close(fd)
        self.pipe_ends = []


class WebSocket:
    """The client's side of RFC 6455, for text."""

    def __init__(self, sock, host, path):
        self.sock, self.stream = sock, Stream(sock.fileno())
        key = base64.b64encode(os.urandom(16)).decode()
        sock.sendall((f"GET {path} HTTP/1.1\r\nHost: {host}\r\nUpgrade: websocket\r\n"
                      f"Connection: Upgrade\r\nSec-WebSocket-Key: {key}\r\n"
                      "Sec-WebSocket-Version: 13\r\n\r\n").encode())
        head = self.stream.take_until(b"\r\n\r\n")
        if not head.startswith(b"HTTP/1.1 101 "):
            raise Failed(f"no WebSocket: {head}")

    def frame(self, opcode, data):
        """Clients mask their frames (5.3). Firefox does not accept the mask 0."""
        n, mask = len(data), os.urandom(4)
        whole = int.from_bytes((mask * (n // 4 + 1))[:n], "big")
        masked = (int.from_bytes(data, "big") ^ whole).to_bytes(n, "big")
        length = bytes((0x80 | n,)) if n < 126 else \
            struct.pack("!BH", 0xfe, n) if n < 65536 else struct.pack("!BQ", 0xff, n)
        self.sock.sendall(bytes((0x80 | opcode,)) + length + mask + masked)

    def write(self, text):
        self.frame(1, text.encode())

    def read(self):
        data, last = b"", False
        while not last:
            first, n = self.stream.take(2)
            if n >= 126:
                n = int.from_bytes(self.stream.take(2 if n == 126 else 8), "big")
            piece, opcode = self.stream.take(n), first & 15
            if opcode == 8:
                raise Failed("the browser closed the WebSocket")
            if opcode == 9:
                self.frame(10, piece)
            if opcode < 8:
                data, last = data + piece, first & 0x80
        return data


class Firefox(Browser):
    def __init__(self, world, preferences=()):
        super().__init__(world, "firefox")
        self.preferences = FIREFOX_PREFERENCES | dict(preferences)
        self.socket = None

    def start(self):
        with open(os.path.join(self.profile, "user.js"), "w") as f:
            f.writelines(f"user_pref({json.dumps(name)}, {json.dumps(value)});\n"
                         for name, value in self.preferences.items())
        self.popen(
            "firefox-esr", "--headless", "--no-remote", "--profile", self.profile,
            f"--remote-debugging-port={BIDI_PORT}", "--width=800", "--height=800", "about:blank")
        self.socket = until("Firefox listens", self.connect, ANSWER_SECONDS_MAX)
        websocket = WebSocket(self.socket, f"127.0.0.1:{BIDI_PORT}", "/session")
        self.remote = Remote(websocket.read, websocket.write)
        done = self.remote.call("session.new", capabilities={
            "alwaysMatch": {"acceptInsecureCerts": True}})
        self.version = f"Firefox {done['capabilities']['browserVersion']}"
        tree = self.remote.call("browsingContext.getTree")
        self.context = tree["contexts"][0]["context"]
        self.remote.call("session.subscribe", events=["network.responseCompleted"])
        self.remote.call("browsingContext.setViewport", context=self.context,
                         viewport={"width": 800, "height": 800})

    def connect(self):
        if self.process.poll() is not None:
            raise Failed(f"Firefox ended: {self.process.returncode}")
        with inside(self.world.client_ns):
            sock = socket.socket()
        try:
            sock.connect(("127.0.0.1", BIDI_PORT))
        except ConnectionRefusedError:
            sock.close()
            return None
        return sock

    def open(self, url):
        """Loads a page with all that it refers to."""
        self.remote.events.clear()
        self.remote.call("browsingContext.navigate", context=self.context, url=url,
                         wait="complete")

    def responses(self):
        """(URL, status, protocol) of each response since open()."""
        return [(event["response"]["url"], event["response"]["status"],
                 event["response"]["protocol"])
                for event in self.remote.seen("network.responseCompleted")]

    def evaluate(self, expression):
        """The value of a JavaScript expression, which may be a promise, as JSON."""
        done = self.remote.call("script.evaluate", awaitPromise=True,
                                target={"context": self.context},
                                expression=f"(async () => JSON.stringify(await ({expression})))()")
        if done["type"] != "success":
            raise Failed(f"{done['exceptionDetails']}")
        return json.loads(done["result"].get("value", "null"))

    def screenshot(self):
        return base64.b64decode(self.remote.call("browsingContext.captureScreenshot",
                                                 context=self.context)["data"])

    def close(self):
        if self.socket:
            self.socket.close()
        super().close()
