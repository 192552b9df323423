#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""A program of handlers, compiled as a user would: outside of the tree, with what is installed."""
import glob
import os
import shutil
import subprocess
import tempfile
import unittest

REPO = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.join(REPO, os.environ.get("NJ_BUILD", "build"))
PROGRAM = r"""
#include <stdio.h>
#include <nightjar/handler.h>
#include <nightjar/server.h>
#ifdef RTE_CONFIG_H_
#error "DPDK's configuration is no user's"
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


def run(*command, **more):
    done = subprocess.run(command, capture_output=True, text=True, **more)
    if done.returncode:
        raise AssertionError(f"{command}: {done.stdout}{done.stderr}")
    return done.stdout


class PkgConfig(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.mkdtemp(prefix="nj-package-")
        cls.addClassCleanup(shutil.rmtree, cls.scratch)
        folder = {name: os.path.join(cls.scratch, name) for name in ("include", "lib")}
        shutil.copytree(os.path.join(REPO, "lib/include"), folder["include"])
        os.mkdir(folder["lib"])
        for library in glob.glob(os.path.join(BUILD, "lib", "libnightjar.s*[o0-9]")):
            shutil.copy(library, folder["lib"], follow_symlinks=False)
        with open(os.path.join(BUILD, "meson-private/nightjar.pc"), encoding="utf-8") as f:
            lines = f.read().split("\n")
        os.mkdir(os.path.join(cls.scratch, "pc"))
        with open(os.path.join(cls.scratch, "pc/nightjar.pc"), "w", encoding="utf-8") as f:
            for line in lines:  # as if this were the prefix
                name = line.partition("=")[0]
                places = {"prefix": cls.scratch, "includedir": folder["include"],
                          "libdir": folder["lib"]}
                print(f"{name}={places[name]}" if name in places else line, file=f)
        cls.env = os.environ | {"PKG_CONFIG_PATH": os.path.join(cls.scratch, "pc"),
                                "LD_LIBRARY_PATH": folder["lib"]}

    def flags(self, which):
        return run("pkg-config", which, "nightjar", env=self.env).split()

    def test_a_user_gets_our_folders_and_nothing_else(self):
        self.assertEqual(self.flags("--cflags"), [f"-I{self.scratch}/include"])
        self.assertEqual(self.flags("--libs"), [f"-L{self.scratch}/lib", "-lnightjar"])

    def test_a_program_compiles_links_and_runs(self):
        source = os.path.join(self.scratch, "hello.c")
        program = os.path.join(self.scratch, "hello")
        with open(source, "w", encoding="utf-8") as f:
            f.write(PROGRAM)
        for standard in ("c11", "gnu17"):
            run("cc", f"-std={standard}", "-Wall", "-Wextra", "-Werror", "-o", program,
                *self.flags("--cflags"), source, *self.flags("--libs"), cwd=self.scratch)
            self.assertRegex(run(program, env=self.env), r"^\d+\.\d+\.\d+ 80\n$")

    def test_packagers_need_no_second_http2(self):
        """Neither tests nor instruments: then there is nothing to compare with."""
        build = os.path.join(self.scratch, "configured")
        run("meson", "setup", build, REPO, "-Dtests=false", "-Dperf=false")
        wanted = run("meson", "introspect", "--dependencies", build)
        self.assertIn("libdpdk", wanted)
        self.assertNotIn("nghttp2", wanted)


if __name__ == "__main__":
    unittest.main()
