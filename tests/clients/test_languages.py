# SPDX-License-Identifier: BSD-3-Clause
"""The HTTP/2 clients of Go and Java: all files byte for byte, at once, on one connection."""
from tests.clients.programs import ProgramCase


class Languages(ProgramCase):
    def test_go(self):
        self.fetch_all("go", "run", "fetch.go")

    def test_java(self):
        self.fetch_all("java", "Fetch.java")
