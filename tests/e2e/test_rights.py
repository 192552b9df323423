# SPDX-License-Identifier: BSD-3-Clause
"""With --user root, handlers have root's file permissions, on threads that open files as nobody."""
import os

from tests.netlab.handlers_case import HandlersCase

PLAIN_BUILD = "rights"
TEXT = b"for root alone\n"
ROUNDS = 30
NAMES = 20  # of lookups at a time: more than the threads of the pool


class Rights(HandlersCase):
    options = ("--workers", "1", "--user", "root")

    @classmethod
    def prepare(cls):
        super().prepare()
        path = os.path.join(cls.world.scratch, "private")
        with open(path, "wb") as f:
            f.write(TEXT)
        os.chmod(path, 0o600)
        cls.world.variables["NJ_TEST_PRIVATE"] = path

    def test_a_handler_after_file_tasks(self):
        """A thread looks up each new name. The handler runs on a thread of the same pool."""
        client = self.client()
        before = self.server.telemetry("/nightjar/workers")
        for i in range(ROUNDS):
            files = [client.request(f"/none-{i}-{k}") for k in range(NAMES)]
            handler = client.request("/private")
            for stream in files:
                self.assertEqual(404, client.response(stream)[0])
            status, _, body = client.response(handler)
            self.assertEqual((200, TEXT), (status, body), f"round {i}")
        after = self.server.telemetry("/nightjar/workers")
        for kind, n in (("files", ROUNDS * NAMES), ("handlers", ROUNDS)):
            self.assertGreaterEqual(after[kind]["done"] - before[kind]["done"], n)
