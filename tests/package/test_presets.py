# SPDX-License-Identifier: BSD-3-Clause
"""drivers-config/embed.py, which makes a table of presets when nightjar is built: wrong files."""
import importlib.util
import os
import unittest

from tests.package.prefix import REPO

SPEC = importlib.util.spec_from_file_location("embed",
                                              os.path.join(REPO, "drivers-config/embed.py"))
EMBED = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(EMBED)
HEAD = "# T.\n#: driver d\n#: bind b\n#: tried t\n#: source s\n"
OFFLOADS = "#: offloads none\n"
REST = "#: queues 1\n#: rss any\n" + OFFLOADS


class Files(unittest.TestCase):
    """What the build says of a file."""

    def test_right(self):
        """As the header says."""
        made = EMBED.entry("x", HEAD + REST + "#: takes a b...\n\n-a {pci}\n")
        self.assertIn('{{"a", 0, 0}, {"b", 0, 1}, {NULL, 0, 0}}', made)
        self.assertIn(".arguments = (const struct nj_preset_argument[]){{NULL, NULL}}", made)
        made = EMBED.entry("x", HEAD + REST + "-m 1\n-a {pci}\n--vdev=net_x0,a=1,b={pci}\n")
        self.assertIn('{{"-m", "1"}, {NULL, NULL}}', made)
        self.assertIn('{{"a", "1"}, {"b", "{pci}"}, {NULL, NULL}}', made)
        self.assertIn('.vdev = "net_x"', made)

    def test_wrong(self):
        """The first error ends the build."""
        for text, told in (
                (HEAD + "#: rss any\n" + OFFLOADS + "-a\n", "no queues"),
                (HEAD + REST, "no arguments"),
                (HEAD[5:] + REST + "-a\n", "no title"),
                ("#:\n", "1: expected one of each of"),
                ("# T.\n#: rss\n", "2: expected one of each of"),
                ("# T.\n#: speed 10\n", "2: expected one of each of"),
                (HEAD + "#: driver e\n", "6: expected one of each of"),
                (HEAD + REST + "-a b c\n", "9: expected an argument, and at most one value"),
                (HEAD + REST + "-m 1\n", "expected -a {pci} or --vdev= at the end"),
                (HEAD + REST + "-a {pci}\n--no-huge\n-a {pci}\n", "expected the devices"),
                (HEAD + REST.replace("1", "many") + "-a\n", "queues: expected a number from 1"),
                (HEAD + REST.replace("1", "0") + "-a\n", "queues: expected a number from 1"),
                (HEAD + REST.replace("none", "tso lro") + "-a\n", 'there is no offload "lro"'),
                (HEAD + REST.replace("any", "yes") + "-a\n", "rss: expected any, device, rings"),
        ):
            with self.subTest(text=text), self.assertRaises(EMBED.Wrong) as raised:
                EMBED.entry("x", text)
            self.assertRegex(str(raised.exception), rf"^x\.args: ?{told}")


if __name__ == "__main__":
    unittest.main()
