# SPDX-License-Identifier: BSD-3-Clause
"""nightjar/test.h: programs that test handlers, compiled outside of the tree with the installed
files, plainly and with sanitizers, and run under valgrind. The library itself has no sanitizer."""
import os
import shutil
import subprocess
import tempfile
import textwrap
import unittest

from tests.package.prefix import REPO, Prefix, run

SOURCE = os.path.join(REPO, "tests/package/without_server.c")
PASSED = "all passed\n"
# A handler on a stack of its own that writes behind its array, and one that forgets a block.
MISTAKES = r"""
#include <stdlib.h>
#include <nightjar/test.h>
static void overflow(struct nj_request *req, struct nj_response *resp, void *arg)
{
    volatile char bytes[10];
    volatile int n = 10;
    (void)req, (void)resp, (void)arg;
    nj_sleep(1000000);
    bytes[n] = bytes[0] = 1;
}
static void leak(struct nj_request *req, struct nj_response *resp, void *arg)
{
    char *volatile block = malloc(12345);
    (void)req, (void)resp, (void)arg;
    nj_sleep(1000000);
    if (block)
        block = NULL;
}
static const struct nj_route routes[] = {{.path = "/overflow", .handle = overflow},
                                         {.path = "/leak", .handle = leak}};
int main(int argc, char **argv)
{
    struct nj_test *t = nj_test_new(routes, 2, NULL);
    nj_test_call(t, "GET", argv[argc - 1], NULL, 0);
    nj_test_free(t);
    return 0;
}
"""


def example():
    """The program of docs/embedding.md."""
    with open(os.path.join(REPO, "docs/embedding.md"), encoding="utf-8") as f:
        text = f.read()
    begin = text.index("    #include <assert.h>")
    return textwrap.dedent(text[begin:text.index("\n- ", begin)])


class WithoutServer(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.mkdtemp(prefix="nj-package-")
        cls.addClassCleanup(shutil.rmtree, cls.scratch)
        cls.prefix = Prefix(cls.scratch)
        cls.root = os.path.join(cls.scratch, "root")
        os.mkdir(cls.root)
        with open(os.path.join(cls.root, "name"), "w", encoding="ascii") as f:
            f.write("12345")

    def compile(self, source, *flags):
        """Compiles a file, or a text. Returns the program."""
        program = os.path.join(self.scratch, self.id())
        if not source.endswith(".c"):
            with open(program + ".c", "w", encoding="utf-8") as f:
                f.write(source)
            source = program + ".c"
        run("cc", "-g", "-O1", "-Wall", "-Wextra", "-Werror", *flags, "-o", program,
            *self.prefix.flags("--cflags"), source, *self.prefix.flags("--libs"))
        return program

    def fails(self, program, *arguments):
        """The report of a program that has to fail."""
        done = subprocess.run([program, *arguments], env=self.prefix.env, capture_output=True,
                              text=True)
        self.assertNotEqual(0, done.returncode)
        return done.stderr

    def test_the_example(self):
        run(self.compile(example()), env=self.prefix.env)

    def test_plain_and_valgrind(self):
        program = self.compile(SOURCE)
        self.assertTrue(run(program, self.root, env=self.prefix.env).endswith(PASSED))
        if not shutil.which("valgrind"):
            self.skipTest("there is no valgrind")
        report = run("valgrind", "-q", "--error-exitcode=9", "--leak-check=full", program,
                     env=self.prefix.env)
        self.assertTrue(report.endswith(PASSED))

    def test_address_sanitizer(self):
        program = self.compile(SOURCE, "-fsanitize=address,undefined",
                               "-fno-sanitize-recover=all")
        self.assertTrue(run(program, self.root, env=self.prefix.env).endswith(PASSED))

    def test_thread_sanitizer(self):
        program = self.compile(SOURCE, "-fsanitize=thread")
        self.assertTrue(run(program, self.root, env=self.prefix.env).endswith(PASSED))

    def test_mistakes_are_found(self):
        program = self.compile(MISTAKES, "-fsanitize=address")
        self.assertRegex(self.fails(program, "/overflow"),
                         r"stack-buffer-overflow.*\n.*\n *#0 \S+ in overflow ")
        self.assertIn("12345 byte(s) leaked", self.fails(program, "/leak"))


if __name__ == "__main__":
    unittest.main()
