# SPDX-License-Identifier: BSD-3-Clause
"""
Handlers that wait for descriptors, for events of another thread, and for calls on workers, on
lcores that meanwhile poll or sleep in each mode of --idle.
"""
from tests.netlab.handlers_case import HandlersCase
from tests.netlab.world import until

ROUTES = "/await-event", "/await-fd", "/call", "/os-await-event", "/os-await-fd"


class Await:
    def test_each_way(self):
        for path in ROUTES:
            with self.subTest(path=path):
                self.assertEqual("done\n", self.curl(self.world.url(path)))

    def test_many_at_once(self):
        client = self.client()
        streams = [client.request(path) for path in ROUTES for _ in range(10)]
        for stream in streams:
            status, _, body = client.response(stream)
            self.assertEqual((200, b"done\n"), (status, body))

    def test_waits_end_when_the_client_leaves(self):
        """tearDown() waits until no handler runs."""
        client = self.client()
        for path in "/await-nothing", "/os-await-nothing":
            client.request(path)
        until("both run", lambda: self.server.ewyk()["fibers_in_use"] == 1 and
              self.server.telemetry("/nightjar/workers")["handlers"]["running"] == 1)


class Sleep(Await, HandlersCase):
    options = ("--idle", "sleep")


class Spin(Await, HandlersCase):
    options = ("--idle", "spin")


class Veth(Await, HandlersCase):
    link = "veth"
    options = ("--idle", "interrupt")
