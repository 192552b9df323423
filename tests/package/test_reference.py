# SPDX-License-Identifier: BSD-3-Clause
"""
The reference pages of the public headers (docs/Doxyfile): Doxygen must give no warning, and include
each paragraph of each function's docstring.
"""
import glob
import os
import re
import subprocess
import tempfile
import unittest
import xml.etree.ElementTree

from lib import exports
from tests.package.prefix import REPO

INCLUDE = os.path.join(REPO, "lib/include/nightjar")
LABELS = ("Context", "Ownership", "Errors", "Returns")


def doxygen(folder, *settings):
    """(exit status, output) of Doxygen with docs/Doxyfile and more settings; writes to `folder`."""
    with open(os.path.join(REPO, "docs/Doxyfile"), encoding="utf-8") as f:
        text = "\n".join([f.read(), f"OUTPUT_DIRECTORY = {folder}", *settings])
    done = subprocess.run(["doxygen", "-"], input=text, cwd=REPO, capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


def described(folder):
    """{function: {label: text}} of Doxygen's XML."""
    found = {}
    for path in glob.glob(os.path.join(folder, "xml", "*_8h.xml")):
        for member in xml.etree.ElementTree.parse(path).iter("memberdef"):
            if member.get("kind") != "function":
                continue
            paragraphs = {}
            for part in member.iter("simplesect"):
                label = part.findtext("title") if part.get("kind") == "par" else "Returns"
                paragraphs[label] = " ".join("".join(part.find("para").itertext()).split())
            found[member.findtext("name")] = paragraphs
    return found


def written():
    """The same read from the headers, without Markdown's code marks."""
    found = {}
    for path in glob.glob(os.path.join(INCLUDE, "*.h")):
        with open(path, encoding="utf-8") as f:
            text = f.read()
        inline = re.findall(r"^static inline \w+ (\w+)\(", text, re.M)
        for name in exports.exported(text) + inline:
            before = text[:re.search(rf"^(?:NJ_API|static inline)\b[^;{{]*?\b{name}\(", text,
                                     re.M).start()]
            comment = before[before.rfind("/**"):].replace("*/", "").replace("`", "")
            parts = re.split(rf"^ \* ({'|'.join(LABELS)}):", comment, flags=re.M)
            found[name] = {label: " ".join(re.sub(r"^ \*", "", part, flags=re.M).split())
                           for label, part in zip(parts[1::2], parts[2::2])}
    return found


class Reference(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="nj-reference-")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def test_pages_of_every_function_without_warnings(self):
        self.assertEqual((0, ""), doxygen(self.folder, "GENERATE_XML = YES"))
        pages, headers = described(self.folder), written()
        self.assertIn("nj_server_config_init", headers)
        self.assertEqual(sorted(headers), sorted(pages))
        for name, paragraphs in headers.items():
            with self.subTest(function=name):
                self.assertIn("Context", paragraphs)
                self.assertEqual(paragraphs, pages[name])
        with open(os.path.join(self.folder, "html/handler_8h.html"), encoding="utf-8") as f:
            self.assertRegex(f.read(), r'class="section user"><dt>Context</dt><dd>')

    def test_warnings_fail(self):
        """For a function without a docstring, and for a docstring with an invalid command."""
        for number, text in enumerate(("/** @file */\nvoid nj_f(void);\n",
                                       "/** @file */\n/** It is @nothing. */\nvoid nj_f(void);\n")):
            header = os.path.join(self.folder, f"bad{number}.h")
            with open(header, "w", encoding="utf-8") as f:
                f.write(text)
            with self.subTest(text=text):
                status, output = doxygen(self.folder, f"INPUT = {header}")
                self.assertNotEqual(0, status)
                self.assertIn(f"bad{number}.h", output)


if __name__ == "__main__":
    unittest.main()
