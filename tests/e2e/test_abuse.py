# SPDX-License-Identifier: BSD-3-Clause
"""
The server closes the connection of an abusive client. The GOAWAY frame carries the reason.
The counts of the lines on standard error add up to the number of closed connections (unit test
log_abuse_log: at most one line per second and reason). Telemetry has the same count and the address
of the client.
"""
import contextlib
import re

import h2.errors
import h2.events

from tests.netlab.case import ServerCase
from tests.netlab.h2client import Client
from tests.netlab.limits import time_limit
from tests.netlab.world import CLIENT_ADDR, until

FLOODS = 12
LINE = re.compile(r" nightjar: warning: abuse: client (\S+): h2_abuse_resets (\d+) times?: ", re.M)


class Reported(ServerCase):
    def reset_until_goaway(self):
        """Resets each request at once until the server closes. Returns the GOAWAY event."""
        client = Client(self.world.connect())
        client.sock.settimeout(time_limit())
        while not client.goaway():
            try:
                for _ in range(100):
                    stream = client.prepare("/one")
                    client.h2.reset_stream(stream, h2.errors.ErrorCodes.CANCEL)
                client.flush()
                client.get("/one")  # not a PING: it could be the frame that exceeds the limit
            except ConnectionError:  # the server closed; its last frames may not be read yet
                with contextlib.suppress(ConnectionError):
                    while client.read():
                        pass
                break
        client.close()
        return next(e for e in client.events if isinstance(e, h2.events.ConnectionTerminated))

    def lines(self):
        return [(address, int(times)) for address, times in LINE.findall(self.world.errors())]

    def test_floods_of_resets(self):
        for _ in range(FLOODS):
            goaway = self.reset_until_goaway()
            self.assertEqual(h2.errors.ErrorCodes.ENHANCE_YOUR_CALM, goaway.error_code)
            self.assertEqual(b"too many streams reset", goaway.additional_data)
        until("a line for each flood", lambda: sum(n for _, n in self.lines()) == FLOODS)
        self.assertEqual(FLOODS, self.counted("h2_abuse_resets"))
        self.assertEqual({CLIENT_ADDR}, {address for address, _ in self.lines()})
        abuse = self.server.telemetry("/nightjar/abuse")["h2_abuse_resets"]
        self.assertEqual((FLOODS, CLIENT_ADDR), (abuse["count"], abuse["client"]))
