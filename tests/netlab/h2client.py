# SPDX-License-Identifier: BSD-3-Clause
"""
An HTTP/2 client for tests. It sends header fields as given, without checks, and reads only when the
test calls it. python3-h2 does the framing; this module has the socket.
"""
import h2.config
import h2.connection
import h2.events
import h2.settings


class Connection(h2.connection.H2Connection):
    """Streams continue after a GOAWAY (RFC 9113 6.8). python3-h2 itself would end them."""

    def _receive_goaway_frame(self, frame):
        event = h2.events.ConnectionTerminated()
        event.error_code = frame.error_code
        event.additional_data = frame.additional_data or None
        return [], [event]


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

    def prepare(self, path, method="GET", ends=True, **more):
        """Prepares a request, which the next flush() sends. Returns its stream identifier."""
        stream = self.h2.get_next_available_stream_id()
        fields = {":method": method, ":scheme": "http", ":authority": "nightjar", ":path": path}
        self.h2.send_headers(stream, list((fields | more).items()), end_stream=ends)
        return stream

    def request(self, path, method="GET", ends=True, **more):
        """Sends a request, without `ends` only its head. Returns its stream identifier."""
        stream = self.prepare(path, method, ends, **more)
        self.flush()
        return stream

    def send(self, stream, data, ends=True):
        """Sends a body within the peer's windows. Returns False if the stream ended before."""
        at = 0
        while at < len(data):
            if self.ended(stream):
                return False
            n = min(len(data) - at, self.h2.max_outbound_frame_size,
                    self.h2.local_flow_control_window(stream))
            if n == 0:
                if not self.read():
                    raise ConnectionError("the server closed during a request")
                continue
            self.h2.send_data(stream, data[at:at + n])
            self.flush()
            at += n
        if ends:
            self.h2.end_stream(stream)
            self.flush()
        return True

    def read(self):
        """Receives data and handles its events. Returns False if the server closed."""
        data = self.sock.recv(1 << 20)
        if not data:
            return False
        events = self.h2.receive_data(data)
        for event in events:
            if isinstance(event, h2.events.DataReceived) and event.flow_controlled_length:
                self.acknowledge(event)
        self.flush()
        self.take(events)
        return True

    def acknowledge(self, data):
        self.h2.acknowledge_received_data(data.flow_controlled_length, data.stream_id)

    def take(self, events):
        """Stores all events. Subclasses override it."""
        self.events += events

    def ended(self, stream):
        return any(isinstance(e, (h2.events.StreamEnded, h2.events.StreamReset))
                   and e.stream_id == stream for e in self.events)

    def response(self, stream):
        """Waits until the stream ends. Returns (status, fields, body)."""
        while not self.ended(stream):
            if not self.read():
                raise ConnectionError("the server closed during a response")
        mine = [e for e in self.events if getattr(e, "stream_id", None) == stream]
        fields = next((dict(e.headers) for e in mine
                       if isinstance(e, h2.events.ResponseReceived)), {})
        body = b"".join(e.data for e in mine if isinstance(e, h2.events.DataReceived))
        return int(fields.get(":status", 0)), fields, body

    def get(self, path, **more):
        return self.response(self.request(path, **more))

    def ping(self):
        """Sends a PING and waits for its acknowledgment."""
        self.h2.ping(b"nightjar")
        self.flush()
        while not any(isinstance(e, h2.events.PingAckReceived) for e in self.events):
            if not self.read():
                raise ConnectionError("the server closed before it acknowledged a PING")
        self.events = [e for e in self.events if not isinstance(e, h2.events.PingAckReceived)]

    def goaway(self):
        return any(isinstance(e, h2.events.ConnectionTerminated) for e in self.events)

    def close(self):
        self.sock.close()


class Holder(Client):
    """A client with large stream windows. The session window is not reopened before release()."""

    WINDOW = 65535  # the initial session window (RFC 9113 6.9.2)

    def __init__(self, sock):
        super().__init__(sock)
        self.h2.update_settings({h2.settings.SettingCodes.INITIAL_WINDOW_SIZE: 1 << 30})
        self.flush()

    def acknowledge(self, data):
        pass

    def release(self):
        """Sends one WINDOW_UPDATE for the session."""
        self.h2.increment_flow_control_window(1 << 30)
        self.flush()
