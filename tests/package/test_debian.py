# SPDX-License-Identifier: BSD-3-Clause
"""
debian/ agrees with the rest of the tree: it packages each file that meson installs, depends on what
`./dev` installs for a build, and its sample policy file is valid. `./dev package --test` builds the
packages and installs them, which takes minutes.
"""
import fnmatch
import glob
import json
import os
import re
import tempfile
import unittest

from tests.package.prefix import BUILD, REPO, run

PROGRAM = os.path.join(BUILD, "app/nightjar/nightjar")
PLACES = {"prefix": "usr", "bindir": "usr/bin", "sbindir": "usr/sbin", "datadir": "usr/share",
          "mandir": "usr/share/man", "includedir": "usr/include", "libdir": "usr/lib/TRIPLET",
          "libdir_shared": "usr/lib/TRIPLET", "sysconfdir": "etc"}


def read(path):
    with open(os.path.join(REPO, path), encoding="utf-8") as f:
        return f.read()


def installed():
    """The paths that `meson install` of the build writes in a package, without the leading /."""
    with open(os.path.join(BUILD, "meson-info/intro-install_plan.json"), encoding="utf-8") as f:
        plan = json.load(f)
    paths = {entry["destination"] for section in plan.values() for entry in section.values()}
    paths = {re.sub(r"^\{(\w+)\}", lambda match: PLACES[match[1]], path) for path in paths}
    paths = {re.sub(r"(^|auto-load)/usr/local/", r"\1/usr/", path).lstrip("/") for path in paths}
    for path in list(paths):  # the plan has no links
        if match := re.match(r"(.*/libnightjar\.so)\.[\d.]+$", path):
            paths |= {match[1], f"{match[1]}.{soversion()}"}
    return paths


def listed():
    """[(file of debian/, pattern)] of what the packages take from meson and from the source."""
    found = []
    for path in glob.glob(os.path.join(REPO, "debian", "*.install")):
        with open(path, encoding="utf-8") as f:
            found += [(os.path.basename(path), line.split()[0]) for line in f
                      if line.strip() and not line.startswith("#")]
    return found


def soversion():
    return re.search(r"soversion = '(\d+)'", read("lib/meson.build"))[1]


def field(name):
    """A field of the first paragraph of debian/control, as a list."""
    text = re.search(rf"^{name}: (.*(?:\n .*)*)", read("debian/control"), re.M)[1]
    return re.split(r",\s*", text)


class Debian(unittest.TestCase):
    def test_each_installed_file_is_in_one_package(self):
        self.assertIn("usr/bin/nightjar", installed())
        for path in sorted(installed()):
            holders = [name for name, pattern in listed() if pattern.startswith(("usr/", "etc/"))
                       and (fnmatch.fnmatch(path, pattern) or path.startswith(pattern + "/"))]
            self.assertEqual(1, len(holders), f"{path} is in {holders}: see debian/*.install")

    def test_each_line_has_a_file(self):
        for name, pattern in listed():
            if pattern.startswith(("usr/", "etc/")):
                found = any(fnmatch.fnmatch(path, pattern) or path.startswith(pattern + "/")
                            for path in installed())
            else:
                found = pattern == "build-reference/html" or glob.glob(os.path.join(REPO, pattern))
            self.assertTrue(found, f"debian/{name}: {pattern} is no file of the build")

    def test_dependencies_of_a_build(self):
        text = read("dev")
        words = re.search(r"^for_build=\((.*?)\)", text, re.M | re.S)[1].split()
        for condition, word in re.findall(r"^\[ (.*?) \] \|\| for_build\+=\(([\w-]+)\)", text,
                                          re.M):
            self.assertIn("x86_64", condition)
            words.append(f"{word} [amd64]")
        self.assertIn("libdpdk-dev", words)
        ours = set(field("Build-Depends")) - {"debhelper-compat (= 13)"}
        self.assertEqual(ours, set(words) - {"build-essential"})

    def test_the_library_package_has_the_name_of_the_soname(self):
        package = f"libnightjar{soversion()}"
        self.assertIn(f"\nPackage: {package}\n", read("debian/control"))
        self.assertTrue(os.path.exists(os.path.join(REPO, f"debian/{package}.install")))

    def test_the_policy_file_is_valid(self):
        said = run(PROGRAM, "--check", "--config", os.path.join(REPO, "debian/nightjar.conf"))
        self.assertRegex(said, r"(?m)^server\n +limits = none$")

    def test_the_keys_of_the_policy_file_are_valid(self):
        """Its comments become valid lines when an administrator removes the #."""
        text = re.sub(r"^#(\w+ = )", r"\1", read("debian/nightjar.conf"), flags=re.M)
        with tempfile.NamedTemporaryFile("w", prefix="nj-policy-") as file:
            file.write(text.replace("/srv/www", REPO))
            file.flush()
            os.chmod(file.name, 0o644)  # the server's user reads it at a reload
            said = run(PROGRAM, "--check", "--config", file.name)
        self.assertRegex(said, r"(?m)^server\n +\w+ = .*\d")


if __name__ == "__main__":
    unittest.main()
