# SPDX-License-Identifier: BSD-3-Clause
"""
A client that sends what it is told: paths are not normalised, reading can stop. python3-h2 does the
framing; only the socket is here.
"""
import h2.config
import h2.connection
import h2.events
import h2.settings


class Connection(h2.connection.H2Connection):
    """Streams go on after a GOAWAY (RFC 9113 6.8), which python3-h2 takes for the end of them."""

    def _receive_goaway_frame(self, frame):
        return [], [h2.events.ConnectionTerminated()]


class Client:
    def __init__(self, sock, window_bytes=65535):
        self.sock = sock
        self.h2 = Connection(h2.config.H2Configuration(
            validate_outbound_headers=False, normalize_outbound_headers=False,
            header_encoding="utf-8"))
        self.h2.initiate_connection()
        if window_bytes > 65535:
            self.h2.update_settings({h2.settings.SettingCodes.INITIAL_WINDOW_SIZE: window_bytes})
            self.h2.increment_flow_control_window(window_bytes - 65535)
        self.events = []
        self.flush()

    def flush(self):
        self.sock.sendall(self.h2.data_to_send())

    def request(self, path, method="GET", **more):
        """Sends a request and returns its stream id."""
        stream = self.h2.get_next_available_stream_id()
        fields = {":method": method, ":scheme": "http", ":authority": "nightjar", ":path": path}
        self.h2.send_headers(stream, list((fields | more).items()), end_stream=True)
        self.flush()
        return stream

    def read(self):
        """Takes what came next; False when the server closed."""
        data = self.sock.recv(1 << 20)
        if not data:
            return False
        events = self.h2.receive_data(data)
        for event in events:
            if isinstance(event, h2.events.DataReceived) and event.flow_controlled_length:
                self.h2.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
        self.flush()
        self.take(events)
        return True

    def take(self, events):
        """Keeps them all; another client may do better."""
        self.events += events

    def response(self, stream):
        """(status, fields, body) once the stream has ended."""
        def ended():
            return any(isinstance(e, (h2.events.StreamEnded, h2.events.StreamReset))
                       and e.stream_id == stream for e in self.events)
        while not ended():
            if not self.read():
                raise ConnectionError("the server closed within a response")
        mine = [e for e in self.events if getattr(e, "stream_id", None) == stream]
        fields = next((dict(e.headers) for e in mine
                       if isinstance(e, h2.events.ResponseReceived)), {})
        body = b"".join(e.data for e in mine if isinstance(e, h2.events.DataReceived))
        return int(fields.get(":status", 0)), fields, body

    def get(self, path, **more):
        return self.response(self.request(path, **more))

    def goaway(self):
        return any(isinstance(e, h2.events.ConnectionTerminated) for e in self.events)

    def close(self):
        self.sock.close()
