# SPDX-License-Identifier: BSD-3-Clause
"""A program with handlers, compiled outside of the tree with the installed files."""
import os
import shutil
import tempfile
import unittest

from tests.package.prefix import REPO, Prefix, run

PROGRAM = r"""
#include <stdio.h>
#include <nightjar/nightjar.h>
#ifdef RTE_CONFIG_H_
#error "a public header includes DPDK's configuration"
#endif
static void hello(struct nj_request *req, struct nj_response *resp, void *arg)
{
    (void)req;
    (void)arg;
    nj_response_write(resp, "hello\n", 6);
}
static const struct nj_route routes[] = {
    {.method = "GET", .path = "/", .type = NJ_NON_BLOCKING, .handle = hello},
};
int main(void)
{
    struct nj_server_config c;
    nj_server_config_init(&c);
    c.routes = routes;
    c.n_routes = 1;
    printf("%s %d\n", nj_version(), c.listen_port);
    return c.size_bytes == sizeof c ? 0 : 1;
}
"""


class PkgConfig(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.mkdtemp(prefix="nj-package-")
        cls.addClassCleanup(shutil.rmtree, cls.scratch)
        cls.prefix = Prefix(cls.scratch)

    def test_flags_have_only_the_installed_folders(self):
        self.assertEqual(self.prefix.flags("--cflags"),
                         [f"-I{self.prefix.include}", "-fstack-clash-protection"])
        self.assertEqual(self.prefix.flags("--libs"), [f"-L{self.prefix.lib}", "-lnightjar"])

    def test_a_program_compiles_links_and_runs(self):
        source = os.path.join(self.scratch, "hello.c")
        program = os.path.join(self.scratch, "hello")
        with open(source, "w", encoding="utf-8") as f:
            f.write(PROGRAM)
        for standard in ("c11", "gnu17"):
            run("cc", f"-std={standard}", "-Wall", "-Wextra", "-Werror", "-o", program,
                *self.prefix.flags("--cflags"), source, *self.prefix.flags("--libs"),
                cwd=self.scratch)
            self.assertRegex(run(program, env=self.prefix.env), r"^\d+\.\d+\.\d+\S* 80\n$")

    def test_a_build_without_tests_needs_no_nghttp2(self):
        """A build without tests and tools needs no other HTTP/2 library for comparisons."""
        build = os.path.join(self.scratch, "configured")
        run("meson", "setup", build, REPO, "-Dtests=false", "-Dperf=false", "-Dload=false")
        wanted = run("meson", "introspect", "--dependencies", build)
        self.assertIn("libdpdk", wanted)
        self.assertNotIn("nghttp2", wanted)


if __name__ == "__main__":
    unittest.main()
