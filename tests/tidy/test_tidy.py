# SPDX-License-Identifier: BSD-3-Clause
"""Tests each rule of tidy.py with a snippet that it must reject and one that it must accept."""
import json
import os
import tempfile
import unittest

from tests.mutants import mutants
from tests.tidy import clang, tidy
from tests.tidy.tidy import Source

TABLE = tidy.layer_table("""
layers = {
  'base': [[], [sodium]],
  'wire': [['base', 'telem'], [dpdk_headers]],
  'tcp':  [['base', 'wire'], []],
}
sources = { 'base': files('base/pool.c') }
""")


def rules_broken(findings):
    return [finding.rule for finding in findings]


class Bans(unittest.TestCase):
    # rule: [(path, rejected snippet, accepted snippet)]
    CASES = {
        "clock": [("lib/tcp/a.c", "x = time(NULL);", "x = rtt.time(1) + c->time(2) + retime(3);"),
                  ("lib/shard/a.c", "rte_rdtsc_precise();", "/* rte_rdtsc() is banned */"),
                  ("tests/sim/a.c", "clock_gettime(0, &t);", 'puts("clock_gettime(");'),
                  ("lib/h2/a.c", "rte_get_timer_cycles ();", "int rte_get_timer_cycles;")],
        "random": [("lib/tcp/a.c", "rand();", "operand(1);"),
                   ("lib/tcp/a.c", "#include <rte_random.h>", "#include <rte_mbuf.h>"),
                   ("tests/unit/a.c", "rte_rand();", "nj_prng_u64(&p);")],
        "device": [("lib/shard/a.c", "#include <rte_ethdev.h>", "#include <rte_ether.h>"),
                   ("lib/server/a.c", "rte_eth_rx_burst(0);", "rte_ether_addr_copy(a, b);"),
                   ("app/nightjar/a.c", "rte_lcore_id();", "nj_lcores();")],
        "nghttp2": [("lib/shard/a.c", "#include <nghttp2/nghttp2.h>", '#include "h2/h2.h"'),
                    ("lib/h2/a.c", "#include <nghttp2/nghttp2.h>", '#include "h2/hpack/hpack.h"'),
                    ("lib/http/a.c", "nghttp2_session_del(s);", "nj_h2_close(s);")],
        "hwloc": [("lib/server/a.c", "#include <hwloc.h>", "#include <stdio.h>")],
        "sodium": [("lib/tcp/a.c", "#include <sodium.h>", '#include "base/keyed_hash.h"')],
        "microhttpd": [("lib/server/a.c", "#include <microhttpd.h>", "#include <stdio.h>"),
                       ("lib/server/a.c", "MHD_run(d);", "nj_mgmt_listener_stop(l);")],
        "printing": [("lib/wire/a.c", "fprintf(stderr, 0);", "snprintf(b, n, 0);"),
                     ("lib/store/a.c", "dprintf(2, why);", "nj_log(NJ_LEVEL_ERROR, why);")],
        "heap": [("lib/tcp/a.c", "free(p);", "nj_pool_free(&pool, p);")],
        "abort": [("lib/http/a.c", "exit(1);", "on_exit_1();")],
        "sleep": [("tests/unit/a.c", "usleep(10);", "asleep(1);")],
        "assert": [("lib/tcp/a.c", "assert(x);", "static_assert(1); NJ_ASSERT(x);")],
    }
    ALLOWED = [("lib/dpdk/a.c", "rte_eth_rx_burst(rte_rdtsc());"),
               ("lib/base/keyed_hash.c", "#include <sodium.h>"),
               ("lib/base/assert.c", "abort();"),
               ("lib/topo/placement_text.c", "fputc(c, out);"),
               ("lib/mgmt/a.c", "fputs(text, out); MHD_run(d);"),
               ("lib/threads/service_thread.c", "#include <rte_lcore.h>"),
               ("tests/unit/h2.c", "#include <nghttp2/nghttp2.h>")]

    def test_named_folders_and_files_exist(self):
        for rule, (where, where_not, *_) in tidy.BANS.items():
            for path in (*where, *where_not):
                with self.subTest(rule=rule, path=path):
                    self.assertTrue(os.path.exists(os.path.join(tidy.REPO, path)))

    def test_every_ban_has_a_case(self):
        self.assertEqual(set(self.CASES), set(tidy.BANS))

    def test_rejected_and_accepted_code(self):
        for rule, cases in self.CASES.items():
            for path, bad, good in cases:
                with self.subTest(rule=rule, bad=bad):
                    self.assertIn(rule, rules_broken(tidy.rule_bans(Source(path, bad))))
                with self.subTest(rule=rule, good=good):
                    self.assertEqual([], rules_broken(tidy.rule_bans(Source(path, good))))

    def test_code_in_excluded_paths(self):
        for path, code in self.ALLOWED:
            with self.subTest(path=path):
                self.assertEqual([], rules_broken(tidy.rule_bans(Source(path, code))))

    def test_workers_may_include_rte_lcore_only(self):
        worker = Source("lib/threads/service_thread.c", "#include <rte_ethdev.h>")
        self.assertEqual(["device"], rules_broken(tidy.rule_bans(worker)))

    def test_text_of_a_finding(self):
        finding = next(tidy.rule_bans(Source("lib/tcp/a.c", "int a;\nlong t = time(0);")))
        self.assertEqual("lib/tcp/a.c:2: clock: time() is banned here, take the `now` argument",
                         str(finding))


class Includes(unittest.TestCase):
    def test_parent_folders(self):
        self.assertTrue([*tidy.rule_include_up(Source("lib/tcp/a.c", '#include "../wire/x.h"'))])
        self.assertFalse([*tidy.rule_include_up(Source("lib/tcp/a.c", '#include "wire/x.h"'))])

    def test_table(self):
        self.assertEqual({"base": set(), "wire": {"base", "telem"}, "tcp": {"base", "wire"}}, TABLE)

    def test_layers(self):
        broken = lambda path, code: [*tidy.rule_layers(Source(path, code), TABLE)]
        self.assertTrue(broken("lib/wire/a.c", '#include "tcp/tcp.h"'))
        self.assertTrue(broken("lib/base/a.c", '#include "wire/packet.h"'))
        self.assertFalse(broken("lib/tcp/a.c", '#include "wire/packet.h"\n#include "tcp/tcp.h"'))
        self.assertFalse(broken("lib/tcp/a.c", "#include <sys/mman.h>\n#include <stdint.h>"))


class Shape(unittest.TestCase):
    HEAD = "/* SPDX-License-Identifier: BSD-3-Clause */\n"

    def broken(self, path, text, paths=()):
        return rules_broken(tidy.rule_head(Source(path, text), paths))

    def test_head(self):
        self.assertEqual(["spdx"], self.broken("lib/tcp/a.c", "int x;\n"))
        self.assertEqual(["head"], self.broken("lib/tcp/a.c", self.HEAD + "int x;\n"))
        self.assertEqual([], self.broken("lib/tcp/a.c", self.HEAD + "/* What it is. */\n"))
        self.assertEqual([], self.broken("lib/tcp/a.c", self.HEAD + "int x;\n", {"lib/tcp/a.h"}))
        self.assertEqual(["head"], self.broken("lib/tcp/a.h", self.HEAD + "int", {"lib/tcp/a.h"}))

    def test_line_length(self):
        self.assertFalse([*tidy.rule_line_length(Source("lib/a.c", "x" * 100))])
        self.assertTrue([*tidy.rule_line_length(Source("lib/a.c", "\n" + "x" * 101))])

    def test_todo(self):
        self.assertTrue([*tidy.rule_todo(Source("lib/a.c", "/* TODO: later */"))])
        self.assertFalse([*tidy.rule_todo(Source("lib/a.c", "/* TODO(#12): later */"))])

    def test_mutable(self):
        rejected = ["static int n;", "int table[4] = {1, 2};", "static const char *name = 0;",
                   "struct nj_x the_one;", "static struct { int a; } s;", "_Thread_local int x;",
                   "static uint64_t total = f(1);"]
        accepted = ["static const int n = 1;", "struct x { int a; char *b; };", "struct x;",
                  "int f(int a)\n{\n    static int b;\n    return b;\n}", "int f(void);",
                  "typedef int nj_x;", "enum { A, B };", "extern int x;",
                  "const struct y t[] = {{1}, {2}};", "static const char *const names[] = {0};",
                  "struct c {\n    int n;\n} NJ_CACHE_ALIGNED;", "#define X static int n;\n",
                  "#define A \\\n  int n;\n", "NJ_STATIC_ASSERT(sizeof(int) == 4);"]
        for code in rejected:
            with self.subTest(code=code):
                self.assertTrue([*tidy.rule_mutable(Source("lib/tcp/a.c", code))])
        for code in accepted:
            with self.subTest(code=code):
                self.assertEqual([], [*map(str, tidy.rule_mutable(Source("lib/tcp/a.c", code)))])
        self.assertFalse([*tidy.rule_mutable(Source("lib/server/a.c", "static int n;"))])
        self.assertTrue([*tidy.rule_mutable(Source("lib/tls/session.c", "static int n;"))])

    def test_mutable_exceptions(self):
        for path, exceptions in tidy.MUTABLE.items():
            code = "\n".join(sorted(exceptions))
            self.assertFalse([*tidy.rule_mutable(Source(path, code))])
            self.assertEqual(len(exceptions), len([*tidy.rule_mutable(Source(path, ""))]))
            self.assertTrue([*tidy.rule_mutable(Source("lib/sched/task.c", code))])
            self.assertTrue([*tidy.rule_mutable(Source(path, code + "\nstatic int n;"))])

    def function(self, n_lines):
        return "int f(int a)\n{\n" + "    a++;\n" * (n_lines - 3) + "}\n"

    def test_functions(self):
        code = "int x;\n\n" + self.function(5) + "\nTest(tcp, opens)\n{\n}\n"
        self.assertEqual([("f", 3, 7), ("tcp_opens", 9, 11)],
                         [*tidy.functions(Source("lib/a.c", code))])

    def test_length(self):
        broken = lambda text, ratchet="", path="lib/a.c": [
            str(f) for f in tidy.rule_length([Source(path, text)], ratchet)]
        self.assertFalse(broken(self.function(70)))
        self.assertTrue(broken(self.function(71)))
        self.assertFalse(broken("\n" * 700))
        self.assertTrue(broken("\n" * 701))

    def test_ratchet_only_shrinks(self):
        broken = lambda n, ratchet: [
            str(f) for f in tidy.rule_length([Source("lib/a.c", self.function(n))], ratchet)]
        self.assertEqual([], broken(80, "lib/a.c:f 80  # why"))
        self.assertIn("80 is the limit", broken(81, "lib/a.c:f 80")[0])
        self.assertIn("write 79", broken(79, "lib/a.c:f 80")[0])
        self.assertIn("remove the line", broken(60, "lib/a.c:f 80")[0])
        self.assertIn("is gone", broken(60, "lib/a.c:g 80")[0])


class Docstrings(unittest.TestCase):
    LINES = {"Context": "any thread.", "Ownership": "the caller's.", "Errors": "none.",
             "Returns": "0."}

    def broken(self, text, path="lib/include/nightjar/a.h"):
        return [str(finding) for finding in tidy.rule_docstring(Source(path, text))]

    def declared(self, declaration, labels):
        lines = "".join(f" * {label}: {self.LINES[label]}\n" for label in labels)
        return f"/**\n * Do it.\n *\n{lines} */\n{declaration}\n"

    # declaration: required labels
    WANTED = {
        "NJ_API void nj_f(struct nj_x *x, const char *name);": ("Context",),
        "NJ_API bool nj_f(uint32_t i,\n                 uint32_t k);": ("Context", "Returns"),
        "NJ_API const char *nj_f(int error);": ("Context", "Returns"),
        "NJ_API struct nj_view nj_f(void *out);": ("Context", "Returns"),
        "NJ_API int nj_f(void);": ("Context", "Errors", "Returns"),
        "NJ_API int64_t nj_f(struct nj_x *x, void *out);": ("Context", "Errors", "Returns"),
        "NJ_API void nj_f(const void *data, size_t n);": ("Context", "Ownership"),
        "NJ_API void nj_f(void *arg);": ("Context", "Ownership"),
        "NJ_API void nj_f(void (*fn)(struct nj_x *),\n                 int a);":
            ("Context", "Ownership"),
        "NJ_API struct nj_x *nj_f(char **why);": ("Context", "Ownership", "Returns"),
        "NJ_API int\nnj_f(const void *data);": ("Context", "Ownership", "Errors", "Returns"),
        "static inline void nj_f(struct nj_x *x)\n{\n    nj_g(x);\n}": ("Context",),
    }

    def test_each_label(self):
        for declaration, labels in self.WANTED.items():
            with self.subTest(declaration=declaration):
                self.assertEqual([], self.broken(self.declared(declaration, labels)))
            for label in labels:
                rest = [other for other in labels if other != label]
                with self.subTest(declaration=declaration, without=label):
                    found = self.broken(self.declared(declaration, rest))
                    self.assertEqual(1, len(found), found)
                    self.assertIn(f"add a line ` * {label}: ...`", found[0])

    def test_text_of_a_finding(self):
        self.assertEqual(
            ["lib/include/nightjar/a.h:7: docstring: nj_f() returns int or int64_t (say \"none.\" "
             "if it cannot fail), add a line ` * Errors: ...`"],
            self.broken(self.declared("NJ_API int nj_f(void);", ("Context", "Returns"))))

    def test_each_function_needs_a_docstring(self):
        good = self.declared("NJ_API void nj_f(void);", ("Context",))
        for text in ("NJ_API void nj_g(void);\n", "/* Context: any thread. */\n", "/**< Its. */\n",
                     "/** Do it.\n *\n * Context: any thread. */\n\n"):
            text = text if "nj_g" in text else text + "NJ_API void nj_g(void);\n"
            with self.subTest(text=text):
                found = self.broken(good + text)
                self.assertEqual(1, len(found), found)
                self.assertIn("nj_g() has no /** ... */ of its own", found[0])

    def test_a_label_begins_its_line(self):
        found = self.broken("/** Do it. Context: any thread. */\nNJ_API void nj_f(void);\n")
        self.assertIn("add a line ` * Context: ...`", found[0])
        found = self.broken("/**\n * Do it.\n *\n * Context:\n */\nNJ_API void nj_f(void);\n")
        self.assertIn("add a line ` * Context: ...`", found[0])

    def test_nothing_returned(self):
        found = self.broken(self.declared("NJ_API void nj_f(void);", ("Context", "Returns")))
        self.assertIn("returns nothing", found[0])

    def test_order(self):
        for labels in (("Returns", "Context", "Errors"), ("Context", "Context", "Errors",
                                                          "Returns")):
            found = self.broken(self.declared("NJ_API int nj_f(void);", labels))
            self.assertEqual(1, len(found), found)
            self.assertIn("in the order Context, Ownership, Errors, Returns", found[0])

    def test_a_sentence_before_the_labels(self):
        for bad in ("/**\n * Context: any.\n */\n", "/**\n * Do it.\n * Context: any.\n */\n",
                    "/**\n *\n * Context: any.\n */\n"):
            found = self.broken(bad + "NJ_API void nj_f(void);\n")
            self.assertEqual(1, len(found), bad)
            self.assertIn("needs a sentence", found[0])
        good = "/**\n * Do it.\n *\n * Again.\n *\n * Context: any.\n */\n"
        self.assertFalse(self.broken(good + "NJ_API void nj_f(void);\n"))

    def test_only_public_functions(self):
        bare = "NJ_API int nj_f(void);\n"
        self.assertTrue(self.broken(bare))
        self.assertFalse(self.broken(bare, "lib/http/a.h"))
        self.assertFalse(self.broken("#define NJ_API extern\n/* NJ_API int nj_f(void); */\n"))

    def test_every_public_function_is_found(self):
        """exports.py, which generates the linker script, finds the same functions."""
        from lib import exports
        n_found = 0
        for name in sorted(os.listdir(os.path.join(tidy.REPO, tidy.PUBLIC))):
            source = Source(f"{tidy.PUBLIC}/{name}", tidy.read(f"{tidy.PUBLIC}/{name}"))
            found = [match[2] for match in tidy.DECLARATION.finditer(source.code)
                     if match[0].startswith("NJ_API")]
            self.assertEqual(exports.exported(source.text), found)
            n_found += len(found)
        self.assertGreater(n_found, 50)


class Tree(unittest.TestCase):
    def test_listed(self):
        source = [Source("lib/tcp/a.c", "")]
        self.assertTrue([*tidy.rule_listed(source, "files('tcp/b.c')")])
        self.assertFalse([*tidy.rule_listed(source, "files('tcp/a.c')")])

    def test_manuals(self):
        texts = {"lib/config/option_table.c": '    {.name = "rate-after", X},\n',
                 "perf/tools/load/option_table.c":
                 """    {'c', "rate", 0},\n    {LOAD_OPTION_X, "in-turn", 0},\n""",
                 "man/nightjar.1": r"\fB\-\-rate\-after\fR",
                 "man/nightjar-load.1": r"\fB\-\-rate\fR \fB\-\-in\-turn\fR"}
        self.assertFalse([*tidy.rule_manuals(texts)])
        for page in "man/nightjar.1", "man/nightjar-load.1":
            self.assertTrue([*tidy.rule_manuals(texts | {page: r"\-\-rate\-afterwards\fR"})])
        for table in "lib/config/option_table.c", "perf/tools/load/option_table.c":
            self.assertTrue([*tidy.rule_manuals(texts | {table: ""})])

    def test_quoted(self):
        texts = {path: tidy.read(path) for pair in tidy.QUOTED.items() for path in pair}
        self.assertFalse([*tidy.rule_quoted(texts)])
        for path, page in tidy.QUOTED.items():
            for changed in path, page:
                text = texts[changed].replace("rotate 14", "rotate 7")
                self.assertTrue([*tidy.rule_quoted(texts | {changed: text})])

    def test_mutant_lines(self):
        source = "tests/mutants/mutants.py"
        mutant = mutants.Mutant("n", "list", source, "what", [], "LONGEST = 120",
                                "LONGEST = 1")
        self.assertFalse([*tidy.rule_mutant_lines([mutant])])
        for changed in (mutant._replace(old="LONGEST"), mutant._replace(old="SHORTEST = 120"),
                        mutant._replace(source="lib/gone.c")):
            found, = tidy.rule_mutant_lines([changed])
            self.assertEqual(("list", "mutant-lines"), (found.path, found.rule))

    def test_mirrored(self):
        lib, unit = Source("lib/tcp/a.c", ""), Source("tests/unit/tcp_a.c", "")
        self.assertTrue([*tidy.rule_mirrored([lib])])
        self.assertFalse([*tidy.rule_mirrored([lib, unit])])

    def test_symbols(self):
        bad = "lib/libnj_tcp.a:tcp_a.c.o:0000000000000010 T helper\n"
        good = ("lib/libnj_tcp.a:tcp_a.c.o:0000000000000010 T nj_tcp_open\n"
                "lib/libnj_tcp.a:tcp_a.c.o:0000000000000010 D nj__table\n"
                "lib/libnj_tcp.a:tcp_a.c.o:0000000000000010 V DW.ref.x\n")
        self.assertTrue([*tidy.rule_symbols(bad)])
        self.assertFalse([*tidy.rule_symbols(good)])

    def test_self_contained(self):
        with tempfile.TemporaryDirectory() as folder:
            for text, alone in (("#include <stdint.h>\nuint8_t x(void);\n", True),
                                ("uint8_t x(void);\n", False)):
                path = os.path.join(folder, "a.h")
                with open(path, "w") as f:
                    f.write(text)
                self.assertEqual(alone, not [*tidy.compiles_alone(path, [])])

    def test_clang(self):
        """What gcc accepts without a warning. Other folders are not for the fuzz targets."""
        bad = "#include <stdatomic.h>\nint f(int *p)\n{\n    return atomic_load(p);\n}\n"
        good = bad.replace("int *p", "_Atomic int *p")
        for path, text, lines in (("lib/a.c", bad, [4]), ("lib/a.c", good, []),
                                  ("tests/unit/a.c", bad, [])):
            with tempfile.TemporaryDirectory() as repo:
                os.makedirs(os.path.join(repo, "build"))
                os.makedirs(os.path.join(repo, os.path.dirname(path)))
                with open(os.path.join(repo, path), "w") as f:
                    f.write(text)
                command = f"cc -Wall -Werror -MD -MQ a.o -MF a.d -o a.o -c ../{path}"
                with open(os.path.join(repo, "build/compile_commands.json"), "w") as f:
                    json.dump([{"command": command, "file": f"../{path}"}], f)
                found = clang.errors_of(repo, "build")
            self.assertEqual([(path, line) for line in lines],
                             [(file, int(line)) for file, line, _ in found])
            self.assertEqual(len(lines), len([*tidy.rule_clang(found)]))

    def test_python(self):
        """An undefined name is found."""
        with tempfile.TemporaryDirectory() as folder:
            for text, good in (("import os\nprint(os.name)\n", True), ("print(nobody)\n", False)):
                path = os.path.join(folder, "a.py")
                with open(path, "w") as f:
                    f.write(text)
                self.assertEqual(good, not [*tidy.rule_python([Source(path, text)])])

    def test_blank_keeps_lines(self):
        text = 'a /* x time(\n*/ b "t(" // c'
        self.assertEqual('a' + ' ' * 11 + '\n   b "  "     ', tidy.blank(text))


class Commits(unittest.TestCase):
    def broken(self, subject, body="It was wrong when the peer sent nothing."):
        return [str(f) for f in tidy.commit_findings("1234567", subject, body)]

    def test_good(self):
        for subject in ("tcp: answer a zero window with probes", "docs/policy: explain lists",
                        "h2: " + "x" * 68, "README, h2: a page is in capitals"):
            self.assertEqual([], self.broken(subject))

    def test_subject(self):
        for subject in ("h2: " + "x" * 69, "no area", "Tcp: capital", "tcp: full stop.", "tcp:"):
            self.assertEqual(1, len(self.broken(subject)), subject)

    def test_body(self):
        for body in ("", "It was wrong."):
            self.assertIn("does not say why", self.broken("tcp: x", body)[0])


if __name__ == "__main__":
    unittest.main()
