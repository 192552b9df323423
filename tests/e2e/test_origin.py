# SPDX-License-Identifier: BSD-3-Clause
"""
The site as an origin server, asked by curl: a test for each row of RFC 9110 13 and 14 that applies
to GET, HEAD and OPTIONS. The table is ROWS; the name of a test is the number of its clause and a
word.

Of "/dated" is known: {E} its entity tag, {DATE} its last modification, {DATE850} and {DATEC} the
same in other forms, {BEFORE} a second earlier, {JUST_AFTER} two and {AFTER} three later: then each
shard knows the file; {WEAK} is W/{E}. It has 1000 bytes. "/empty" has none, "/none" is not there.
"""
import email
import email.policy
import hashlib
import json
import os
import random
import re
import subprocess
import time

from tests.netlab.case import ServerCase
from tests.netlab.limits import time_limit
from tests.netlab.world import until

MODIFIED = 784111777  # Sun, 06 Nov 1994 08:49:37 GMT, a date of RFC 9110
SIZE = 1000
BIG = (20 << 20) + 12345  # is read in chunks
CHUNK = 256 << 10

IM, INM, IMS, IUS = "If-Match: ", "If-None-Match: ", "If-Modified-Since: ", "If-Unmodified-Since: "
IR, R = "If-Range: ", "Range: bytes="


def http_date(unix_s, form="%a, %d %b %Y %H:%M:%S GMT"):
    return time.strftime(form, time.gmtime(unix_s))


# clause, word, what the clause says, lines of the request, status, and what else, or None:
# "a-b": that range, alone; "a-b c-d": these, in parts; "*": the length of all; and the path and the
# method where they are not GET /dated.
ROWS = (
    ("13.1.1", "same", "If-Match: the tag of the file", [IM + "{E}"], 200),
    ("13.1.1", "other", "If-Match: another one", [IM + '"other"'], 412),
    ("13.1.1", "any", "If-Match: * when there is a file", [IM + "*"], 200),
    ("13.1.1", "list", "If-Match: one of several", [IM + '"a", {E}, "b"'], 200),
    ("13.1.1", "lines", "If-Match: one of several, in lines", [IM + '"a"', IM + "{E}"], 200),
    ("13.1.1", "none_of_list", "If-Match: none of several", [IM + '"a", "b"'], 412),
    ("13.1.1", "weak", "If-Match compares strongly", [IM + "{WEAK}"], 412),
    ("13.1.1", "unquoted", "If-Match: what is no tag matches none", [IM + "a"], 412),
    ("13.1.1", "head", "If-Match of HEAD", [IM + '"other"'], 412, None, "/dated", "HEAD"),
    ("13.1.2", "same", "If-None-Match: the tag of the file", [INM + "{E}"], 304),
    ("13.1.2", "other", "If-None-Match: another one", [INM + '"other"'], 200),
    ("13.1.2", "any", "If-None-Match: * when there is a file", [INM + "*"], 304),
    ("13.1.2", "list", "If-None-Match: one of several", [INM + '"a", {E}'], 304),
    ("13.1.2", "lines", "If-None-Match: one of several, in lines", [INM + '"a"', INM + "{E}"], 304),
    ("13.1.2", "weak", "If-None-Match compares weakly", [INM + "{WEAK}"], 304),
    ("13.1.2", "unquoted", "If-None-Match: what is no tag matches none", [INM + "a"], 200),
    ("13.1.2", "head", "If-None-Match of HEAD", [INM + "{E}"], 304, None, "/dated", "HEAD"),
    ("13.1.3", "same", "If-Modified-Since: when it was", [IMS + "{DATE}"], 304),
    ("13.1.3", "later", "If-Modified-Since: after it was", [IMS + "{AFTER}"], 304),
    ("13.1.3", "just_after", "If-Modified-Since: when a shard may have had the former file",
     [IMS + "{JUST_AFTER}"], 200),
    ("13.1.3", "earlier", "If-Modified-Since: before it was", [IMS + "{BEFORE}"], 200),
    ("13.1.3", "rfc850", "a date in the form of RFC 850", [IMS + "{DATE850}"], 304),
    ("13.1.3", "asctime", "a date in the form of asctime()", [IMS + "{DATEC}"], 304),
    ("13.1.3", "bad", "no date: ignored", [IMS + "yesterday"], 200),
    ("13.1.3", "two", "two dates: ignored", [IMS + "{DATE}", IMS + "{DATE}"], 200),
    ("13.1.3", "beside_tag", "If-None-Match wins", [INM + '"a"', IMS + "{AFTER}"], 200),
    ("13.1.3", "head", "If-Modified-Since of HEAD", [IMS + "{DATE}"], 304, None, "/dated", "HEAD"),
    ("13.1.4", "same", "If-Unmodified-Since: when it was", [IUS + "{DATE}"], 200),
    ("13.1.4", "later", "If-Unmodified-Since: after it was", [IUS + "{AFTER}"], 200),
    ("13.1.4", "earlier", "If-Unmodified-Since: before it was", [IUS + "{BEFORE}"], 412),
    ("13.1.4", "bad", "no date: ignored", [IUS + "never"], 200),
    ("13.1.4", "beside_tag", "If-Match wins", [IM + "{E}", IUS + "{BEFORE}"], 200),
    ("13.1.5", "same", "If-Range: the tag", [IR + "{E}", R + "1-2"], 206, "1-2"),
    ("13.1.5", "other", "If-Range: another tag", [IR + '"a"', R + "1-2"], 200),
    ("13.1.5", "weak", "If-Range compares strongly", [IR + "{WEAK}", R + "1-2"], 200),
    ("13.1.5", "date", "If-Range: exactly the date", [IR + "{DATE}", R + "1-2"], 206, "1-2"),
    ("13.1.5", "later", "If-Range: a later date", [IR + "{AFTER}", R + "1-2"], 200),
    ("13.1.5", "earlier", "If-Range: an earlier date", [IR + "{BEFORE}", R + "1-2"], 200),
    ("13.1.5", "alone", "If-Range without Range", [IR + "{E}"], 200),
    ("13.1.5", "beyond", "a Range that does not count is not 416", [IR + '"a"', R + "5000-"], 200),
    ("13.2.1", "absent", "not looked at where 200 would not come", [IM + "*"], 404, None, "/none"),
    ("13.2.1", "folder", "nor in a redirect", [INM + "*"], 301, None, "/folder"),
    ("13.2.1", "options", "nor by OPTIONS", [IM + '"a"'], 204, None, "/dated", "OPTIONS"),
    ("13.2.1", "post", "nor by a method that is not allowed", [IM + '"a"'], 405, None, "/dated",
     "POST"),
    ("13.2.2", "1_before_3", "If-Match fails first", [IM + '"a"', INM + "{E}"], 412),
    ("13.2.2", "1_then_3", "both hold", [IM + "{E}", INM + "{E}"], 304),
    ("13.2.2", "2_before_4", "If-Unmodified-Since fails first", [IUS + "{BEFORE}", IMS + "{DATE}"],
     412),
    ("13.2.2", "2_then_3", "both hold", [IUS + "{DATE}", INM + "{E}"], 304),
    ("13.2.2", "3_before_4", "the tag decides", [INM + "{E}", IMS + "{BEFORE}"], 304),
    ("13.2.2", "3_before_5", "304 before 416", [INM + "{E}", R + "5000-"], 304),
    ("13.2.2", "1_before_5", "412 before 206", [IM + '"a"', R + "1-2"], 412),
    ("13.2.2", "all", "all hold", [IM + "{E}", INM + '"a"', IR + "{E}", R + "0-9"], 206, "0-9"),
    ("14.1", "unit_case", "names of units ignore case", ["Range: BYTES=1-2"], 206, "1-2"),
    ("14.1.1", "first_last", "first and last", [R + "0-499"], 206, "0-499"),
    ("14.1.1", "one_byte", "first and last are one", [R + "7-7"], 206, "7-7"),
    ("14.1.1", "open", "to the end", [R + "990-"], 206, "990-999"),
    ("14.1.1", "suffix", "the last ones", [R + "-10"], 206, "990-999"),
    ("14.1.1", "backwards", "last before first: no range", [R + "5-4"], 200),
    ("14.1.1", "nonsense", "no numbers", [R + "a-b"], 200),
    ("14.1.1", "nothing", "neither first nor last", [R + "-"], 200),
    ("14.1.1", "blanks", "a list may have blanks and empty elements", [R + " 1-2 , ,"], 206, "1-2"),
    ("14.1.2", "all", "a range of all is a range", [R + "0-"], 206, "0-999"),
    ("14.1.2", "last_beyond", "the last is beyond the end", [R + "990-5000"], 206, "990-999"),
    ("14.1.2", "last_huge", "far beyond", [R + "990-99999999999999999999999"], 206, "990-999"),
    ("14.1.2", "suffix_beyond", "more than there is", [R + "-5000"], 206, "0-999"),
    ("14.1.2", "first_beyond", "the first is beyond the end", [R + "1000-"], 416),
    ("14.1.2", "first_huge", "far beyond", [R + "99999999999999999999999-"], 416),
    ("14.1.2", "no_suffix", "the last none", [R + "-0"], 416),
    ("14.1.2", "one_of_two", "one is beyond the end", [R + "5000-,3-4"], 206, "3-4"),
    ("14.1.2", "both", "both are", [R + "5000-,6000-"], 416),
    ("14.1.2", "empty", "a file without bytes", [R + "0-"], 416, None, "/empty"),
    ("14.1.2", "empty_suffix", "the end of it is all of it", [R + "-5"], 200, None, "/empty"),
    ("14.2", "unit", "a unit that is not known is ignored", ["Range: lines=1-2"], 200),
    ("14.2", "head", "only GET has ranges", [R + "1-2"], 200, None, "/dated", "HEAD"),
    ("14.2", "head_beyond", "so HEAD has no 416", [R + "5000-"], 200, None, "/dated", "HEAD"),
    ("14.2", "twice", "two Range fields are no list", [R + "1-2", R + "1-2"], 200),
    ("14.2", "overlap", "overlapping ones are ignored", [R + "0-100,100-200"], 200),
    ("14.2", "overlap_suffix", "also at the end", [R + "-100,950-"], 200),
    ("14.2", "many", "more than 16, with their headers longer than the file, are ignored",
     [R + ",".join(f"{10 * i}-{10 * i}" for i in range(17))], 200),
    ("14.2", "as_many", "16 are not", [R + ",".join(f"{10 * i}-{10 * i}" for i in range(16))], 206,
     " ".join(f"{10 * i}-{10 * i}" for i in range(16))),
    ("14.2", "killer", "CVE-2011-3192", [R + "0-," + ",".join(f"5-{i}" for i in range(500))], 200),
    ("14.4", "length", "Content-Range and Content-Length", [R + "100-299"], 206, "100-299"),
    ("14.6", "two", "multipart/byteranges", [R + "0-0,-1"], 206, "0-0 999-999"),
    ("14.6", "order", "in the order they were asked for", [R + "500-999,0-99,200-299"], 206,
     "500-999 0-99 200-299"),
    ("14.6", "touching", "they may touch", [R + "0-99,100-199"], 206, "0-99 100-199"),
)


class Response:
    def __init__(self, raw):
        head, _, self.body = raw.partition(b"\r\n\r\n")
        lines = head.decode("latin-1").split("\r\n")
        self.status = int(lines[0].split()[1])
        self.fields = {}
        for line in lines[1:]:
            name, _, value = line.partition(": ")
            assert name not in self.fields, f"{name} came twice"
            self.fields[name] = value

    def __getitem__(self, name):
        return self.fields.get(name)


def parts_of(response):
    """[(content-type, content-range, bytes)] of a multipart body, read by Python's email."""
    head = f"content-type: {response['content-type']}\r\nmime-version: 1.0\r\n\r\n".encode()
    message = email.message_from_bytes(head + response.body, policy=email.policy.HTTP)
    assert message.is_multipart() and not message.defects, message.defects
    # latin-1 and back: email keeps 8-bit bytes of a part as surrogates.
    return [(part["content-type"], part["content-range"],
             part.get_payload(decode=False).encode("ascii", "surrogateescape"))
            for part in message.iter_parts()]


class OriginCase(ServerCase):
    def ask(self, path="/dated", *lines, method="GET"):
        args = ["-I"] if method == "HEAD" else ["-i"] if method == "GET" else ["-i", "-X", method]
        for line in lines:
            args += ["-H", line]
        return Response(self.curl(*args, self.world.url(path), text=False))

    def read(self, name):
        with open(os.path.join(self.root, name), "rb") as f:
            return f.read()

    @classmethod
    def write(cls, name, data, mtime=None):
        path = os.path.join(cls.root, name)
        with open(path, "wb") as f:
            f.write(data)
        if mtime is not None:
            os.utime(path, (mtime, mtime))
        return path


class Table(OriginCase):
    options = ("--cache-control", "max-age=60")

    @classmethod
    def prepare(cls):
        # No byte that email would take for a line's end; so what it reads is what was sent.
        cls.data = bytes(random.Random(2).choices(range(33, 127), k=SIZE))
        cls.modified = int(os.stat(cls.write("dated", cls.data)).st_mtime)

    def dates(self):
        """A file has a date three seconds after its last change."""
        until("a date", lambda: self.ask(method="HEAD")["last-modified"])
        return {"DATE": http_date(self.modified), "BEFORE": http_date(self.modified - 1),
                "JUST_AFTER": http_date(self.modified + 2), "AFTER": http_date(self.modified + 3),
                "DATE850": http_date(self.modified, "%A, %d-%b-%y %H:%M:%S GMT"),
                "DATEC": http_date(self.modified, "%a %b %e %H:%M:%S %Y")}

    def row(self, clause, word, says, lines, status, what=None, path="/dated", method="GET"):
        known = self.dates()
        tag = self.ask(path="/dated", method="HEAD")["etag"]
        known.update(E=tag, WEAK="W/" + tag)
        lines = [re.sub(r"\{(\w+)\}", lambda m: known[m.group(1)], line) for line in lines]
        self.said = f"RFC 9110 {clause} {word}: {says}; {lines} of {method} {path}"
        got = self.ask(path, *lines, method=method)
        self.assertEqual(status, got.status, self.said)
        self.assertIsNotNone(got["date"], self.said)
        if status in (200, 206, 304):
            self.assertIsNotNone(got["etag"], self.said)
            self.assertEqual("max-age=60", got["cache-control"], self.said)
        check = getattr(self, f"check_{status}", None)
        if check:
            check(got, what, path, method)

    def check_200(self, got, _, path, method):
        size = 0 if path == "/empty" else SIZE
        self.assertEqual(("bytes", None, str(size)),
                         (got["accept-ranges"], got["content-range"], got["content-length"]))
        if method == "GET":
            self.assertEqual(self.data[:size], got.body, self.said)

    def check_206(self, got, what, *_):
        ranges = [tuple(map(int, r.split("-"))) for r in what.split()]
        self.assertEqual(str(len(got.body)), got["content-length"])
        if len(ranges) == 1:
            (first, last), = ranges
            self.assertEqual(f"bytes {first}-{last}/{SIZE}", got["content-range"], self.said)
            self.assertEqual(self.data[first:last + 1], got.body, self.said)
            return
        self.assertIsNone(got["content-range"], "RFC 9110 15.3.7.2")
        self.assertEqual([("application/octet-stream", f"bytes {first}-{last}/{SIZE}",
                           self.data[first:last + 1]) for first, last in ranges],
                         parts_of(got), self.said)

    def check_304(self, got, *_):
        """RFC 9110 15.4.5: what guides caches, and nothing of the content."""
        self.assertEqual(b"", got.body)
        for name in ("content-length", "content-type", "last-modified", "accept-ranges"):
            self.assertIsNone(got[name], self.said)

    def check_416(self, got, _, path, __):
        size = 0 if path == "/empty" else SIZE
        self.assertEqual(f"bytes */{size}", got["content-range"], "RFC 9110 15.5.17")

    def check_405(self, got, *_):
        self.assertEqual("GET, HEAD, OPTIONS", got["allow"])

    def check_204(self, got, *_):
        self.assertEqual("GET, HEAD, OPTIONS", got["allow"])
        self.assertIsNone(got["content-length"])

    def test_what_a_file_comes_with(self):
        date = self.dates()["DATE"]
        got = self.ask()
        self.assertEqual(date, got["last-modified"])
        self.assertRegex(got["etag"], r'^"[0-9a-f]+-3e8"$')
        self.assertEqual("nosniff", got["x-content-type-options"])
        self.assertIsNone(got["vary"], "there is one form of it only")
        head = self.ask(method="HEAD")
        for fields in (got.fields, head.fields):
            fields.pop("date")
        self.assertEqual(got.fields, head.fields, "RFC 9110 9.3.2")

    def test_a_change_changes_the_tag(self):
        path = self.write("changing", b"a", MODIFIED)
        tags = set()

        def another():
            tag = self.ask("/changing", method="HEAD")["etag"]
            return tag not in tags and tag
        for mtime_ns in (MODIFIED * 10**9, MODIFIED * 10**9 + 1, (MODIFIED + 1) * 10**9):
            os.utime(path, ns=(mtime_ns, mtime_ns))
            # A shard looks at a file once in a second.
            tags.add(until(f"another tag than {tags}", another))

    def test_tomorrow(self):
        """RFC 9110 8.8.2.1: a date is never later than the response."""
        self.write("tomorrow", b"a", 4102444800)
        self.assertIsNone(self.ask("/tomorrow")["last-modified"])


class Versions(OriginCase):
    """A file that is replaced by one of equal size and time, as rsync -t, cp -p and reproducible
    builds do."""
    lcores = 1  # another one may know the old file for a second longer
    OLD, NEW = b"<p>old page</p>" * 100, b"<p>new page</p>" * 100

    def replace(self, name, data):
        path = self.write(name + ".new", data, MODIFIED)
        os.rename(path, os.path.join(self.root, name))

    def tagged(self, path, *lines):
        """A response with a tag: a file that was changed just now has none."""
        def tagged():
            got = self.ask(path, *lines)
            return got["etag"] and got
        return until(f"a tag of {path}", tagged)

    def test_replaced(self):
        self.replace("page", self.OLD)
        old = self.tagged("/page")
        date = until("a date", lambda: self.ask("/page")["last-modified"])
        self.assertEqual(http_date(MODIFIED), date)
        self.replace("page", self.NEW)
        until("the new page", lambda: self.ask("/page").body == self.NEW)
        for lines, status in (([INM + old["etag"]], 200),
                              ([INM + old["etag"], IMS + date], 200),
                              ([IM + old["etag"]], 412),
                              ([IR + old["etag"], R + "700-"], 200),
                              ([IR + date, R + "700-"], 200),
                              ([IUS + date, R + "700-"], 200)):
            with self.subTest(lines=lines):
                got = self.ask("/page", *lines)
                self.assertEqual(status, got.status)
                if status == 200:
                    self.assertEqual(self.NEW, got.body)

    def test_of_a_mirror(self):
        """rsync -t keeps the mtime, so ctime is later: 304 by the date, but no part of the file."""
        self.replace("mirrored", self.OLD)
        date = until("a date", lambda: self.ask("/mirrored")["last-modified"])
        self.assertEqual(http_date(MODIFIED), date)
        os.chmod(os.path.join(self.root, "mirrored"), 0o444)
        until("the date after chmod", lambda: self.ask("/mirrored")["last-modified"])
        for lines, status in (([IMS + date], 304), ([IMS + http_date(MODIFIED - 1)], 200),
                              ([IMS + http_date(MODIFIED + 1)], 200),
                              ([IR + date, R + "700-"], 200), ([IUS + date, R + "700-"], 200),
                              ([IUS + date], 200)):
            with self.subTest(lines=lines):
                self.assertEqual(status, self.ask("/mirrored", *lines).status)

    def test_sibling_of_the_former_version(self):
        self.replace("packed", self.OLD)
        self.write("packed.gz", b"old, packed", MODIFIED)
        accepts = "Accept-Encoding: gzip"
        self.assertEqual("gzip", self.tagged("/packed", accepts)["content-encoding"])
        stamp = os.stat(os.path.join(self.root, "packed.gz")).st_ctime_ns

        def replaced_later():
            self.replace("packed", self.NEW)
            return os.stat(os.path.join(self.root, "packed")).st_ctime_ns > stamp
        until("another tick of the file system", replaced_later)
        until("the new page", lambda: self.ask("/packed").body == self.NEW)
        got = self.ask("/packed", accepts)
        self.assertEqual((None, self.NEW), (got["content-encoding"], got.body))
        self.write("packed.gz", b"new, packed", MODIFIED)
        until("the new sibling", lambda: self.ask("/packed", accepts).body == b"new, packed")

    def test_times_of_packages(self):
        """Nix sets 1, OSTree 0: that is no date."""
        for mtime in (0, 1):
            name = f"package-{mtime}"
            self.write(name, b"a", mtime)
            got = self.tagged("/" + name)
            self.assertRegex(got["etag"], r'^W/"[0-9a-f]+-1"$')
            self.assertIsNone(got["last-modified"])
            again = self.ask("/" + name, IMS + http_date(2))
            self.assertEqual(200, again.status)

    def test_times_beyond_the_year_2262(self):
        path = self.write("late", b"a", 13569465600)  # 2400-01-01
        self.assertEqual(13569465600, os.stat(path).st_mtime)
        got = self.ask("/late")
        self.assertEqual((200, None, None), (got.status, got["etag"], got["last-modified"]))


def add_rows():
    for row in ROWS:
        def test(self, row=row):
            self.row(*row)
        test.__doc__ = row[2]
        name = f"test_{row[0].replace('.', '_')}_{row[1]}"
        assert not hasattr(Table, name), name
        setattr(Table, name, test)


add_rows()


class Big(OriginCase):
    """Ranges of a file that is read in chunks."""

    @classmethod
    def prepare(cls):
        block = random.Random(3).randbytes((1 << 20) + 7)
        cls.data = (block * (BIG // len(block) + 1))[:BIG]
        cls.write("big", cls.data)

    def slice_sum(self, first, last):
        return hashlib.sha256(self.data[first:last + 1]).hexdigest()

    def test_slices(self):
        prng = random.Random(4)
        rows = [(0, 0), (0, CHUNK - 1), (CHUNK - 1, CHUNK), (CHUNK, 2 * CHUNK - 1), (1, BIG - 1),
                (BIG - 1, BIG - 1), (BIG - CHUNK - 1, BIG - 1), (3 * CHUNK - 5, 11 * CHUNK + 5)]
        rows += [tuple(sorted(prng.randrange(BIG) for _ in "ab")) for _ in range(8)]
        for first, last in rows:
            with self.subTest(first=first, last=last):
                got = self.ask("/big", f"Range: bytes={first}-{last}")
                self.assertEqual(206, got.status)
                self.assertEqual(f"bytes {first}-{last}/{BIG}", got["content-range"])
                self.assertEqual(self.slice_sum(first, last),
                                 hashlib.sha256(got.body).hexdigest())

    def test_a_download_goes_on_where_it_stopped(self):
        part = os.path.join(self.world.scratch, "part")
        with open(part, "wb") as f:
            f.write(self.data[:7_654_321])
        self.curl("-C", "-", "-o", part, self.world.url("/big"))
        with open(part, "rb") as f:
            self.assertEqual(self.slice_sum(0, BIG), hashlib.sha256(f.read()).hexdigest())

    def test_parts(self):
        ranges = [(5 * CHUNK - 3, 5 * CHUNK + 100_000), (0, 9), (BIG - 70_000, BIG - 1),
                  (CHUNK + 1, 3 * CHUNK)]
        value = ",".join(f"{first}-{last}" for first, last in ranges)
        got = self.ask("/big", f"Range: bytes={value}")
        self.assertEqual(206, got.status)
        self.assertEqual(str(len(got.body)), got["content-length"])
        boundary = got["content-type"].partition("boundary=")[2].encode()
        self.assertNotIn(boundary, self.data)
        # email would take line ends in the data for its own: the parts are cut out here.
        pieces = got.body.split(b"--" + boundary)
        self.assertEqual((b"", b"--\r\n"), (pieces[0], pieces[-1]))
        self.assertEqual(len(ranges), len(pieces) - 2)
        for (first, last), piece in zip(ranges, pieces[1:-1]):
            head, _, data = piece.partition(b"\r\n\r\n")
            self.assertIn(f"content-range: bytes {first}-{last}/{BIG}", head.decode())
            self.assertEqual(self.slice_sum(first, last),
                             hashlib.sha256(data[:-2]).hexdigest())

    def test_two_hundred_parts(self):
        """A zchunk client asks for the parts of a file that it does not have."""
        ranges = [(i * 90_001, i * 90_001 + i * 7) for i in range(200)]
        value = ",".join(f"{first}-{last}" for first, last in ranges)
        self.assertGreater(len(value), 3000)
        got = self.ask("/big", f"Range: bytes={value}")
        self.assertEqual(206, got.status)
        self.assertEqual(str(len(got.body)), got["content-length"])
        boundary = got["content-type"].partition("boundary=")[2].encode()
        pieces = got.body.split(b"--" + boundary)
        self.assertEqual((b"", b"--\r\n", 202), (pieces[0], pieces[-1], len(pieces)))
        for (first, last), piece in zip(ranges, pieces[1:-1]):
            head, _, data = piece.partition(b"\r\n\r\n")
            self.assertIn(f"content-range: bytes {first}-{last}/{BIG}", head.decode())
            self.assertEqual(self.slice_sum(first, last),
                             hashlib.sha256(data[:-2]).hexdigest())

    def test_more_ranges_than_there_may_be(self):
        for value in (",".join(f"{i * 70_000}-{i * 70_000}" for i in range(257)),
                      ",".join(f"{i}0000-{i}0009" for i in range(30, 0, -1))):
            got = self.ask("/big", f"Range: bytes={value}")
            self.assertEqual((200, str(BIG)), (got.status, got["content-length"]))

    def test_many_at_once(self):
        """One connection each, ranges that cover all of the file."""
        step = BIG // 16 + 1
        clients = []
        for first in range(0, BIG, step):
            script = (f"curl -sS --http2-prior-knowledge -r {first}-{first + step - 1} "
                      f"{self.world.url('/big')} | sha256sum")
            clients.append((first, self.world.client_popen("sh", "-c", script, text=True,
                                                           stdout=subprocess.PIPE)))
        for first, client in clients:
            out, _ = client.communicate(timeout=time_limit())
            self.assertEqual(self.slice_sum(first, min(first + step, BIG) - 1), out.split()[0])


TOOLS = {"br": ("brotli", "-q", "5", "-c", "-d"), "zstd": ("zstd", "-q", "-5", "-c", "-d"),
         "gzip": ("gzip", "-n", "-9", "-c", "-d")}
SUFFIX = {"br": ".br", "zstd": ".zst", "gzip": ".gz"}


class Codings(OriginCase):
    """RFC 9110 8.4, 8.8.3.3, 12.5.3, 12.5.5: siblings made by the real tools."""

    @classmethod
    def prepare(cls):
        cls.page = "".join(f"<p>{i} {i * i}</p>\n" for i in range(20000)).encode()
        for name in ("page.html", "half.html", "old.html"):
            cls.write(name, cls.page, MODIFIED)
        for coding, (program, *flags, _) in TOOLS.items():
            packed = subprocess.run([program, *flags], input=cls.page, check=True,
                                    timeout=time_limit(), capture_output=True).stdout
            cls.write("page.html" + SUFFIX[coding], packed, MODIFIED)
            cls.write("old.html" + SUFFIX[coding], packed, MODIFIED - 1)
            if coding == "gzip":
                cls.write("half.html.gz", packed, MODIFIED + 5)

    def unpack(self, coding, data):
        program, *_, flag = TOOLS[coding]
        return subprocess.run([program, flag, "-c"], input=data, check=True, timeout=time_limit(),
                              capture_output=True).stdout

    def test_each(self):
        tags = {self.ask("/page.html")["etag"]}
        for coding in TOOLS:
            with self.subTest(coding=coding):
                got = self.ask("/page.html", f"Accept-Encoding: {coding}")
                self.assertEqual((200, coding, "accept-encoding", "text/html"),
                                 (got.status, got["content-encoding"], got["vary"],
                                  got["content-type"]))
                self.assertEqual(self.page, self.unpack(coding, got.body))
                tags.add(got["etag"])
                again = self.ask("/page.html", f"Accept-Encoding: {coding}",
                                 f"If-None-Match: {got['etag']}")
                self.assertEqual((304, "accept-encoding"), (again.status, again["vary"]))
        self.assertEqual(len(TOOLS) + 1, len(tags), tags)

    def test_no_tag_stands_for_another_coding(self):
        plain = self.ask("/page.html")
        got = self.ask("/page.html", "Accept-Encoding: gzip", f"If-None-Match: {plain['etag']}")
        self.assertEqual((200, "gzip"), (got.status, got["content-encoding"]))
        got = self.ask("/page.html", "Accept-Encoding: gzip", f"If-Range: {plain['etag']}",
                       "Range: bytes=0-9")
        self.assertEqual(200, got.status)

    def test_none(self):
        for line in ("X: y", "Accept-Encoding;", "Accept-Encoding: identity",
                     "Accept-Encoding: gzip;q=0", "Accept-Encoding: deflate",
                     "Accept-Encoding: gzip;q=0.5, identity"):
            with self.subTest(line=line):
                got = self.ask("/page.html", line)
                self.assertEqual((200, None, "accept-encoding", self.page),
                                 (got.status, got["content-encoding"], got["vary"], got.body))

    def test_nothing_acceptable_is_not_406(self):
        got = self.ask("/page.html", "Accept-Encoding: identity;q=0, compress")
        self.assertEqual((200, None, self.page), (got.status, got["content-encoding"], got.body))

    def test_preference(self):
        for value, coding in (("gzip, zstd, br", "br"), ("gzip, zstd", "zstd"), ("*", "br"),
                              ("br;q=0.5, gzip;q=0.6", "gzip"), ("*, br;q=0", "zstd"),
                              ("x-gzip", "gzip"), ("GZIP", "gzip"), ("gzip;q=0.001", "gzip")):
            with self.subTest(value=value):
                got = self.ask("/page.html", f"Accept-Encoding: {value}", method="HEAD")
                self.assertEqual(coding, got["content-encoding"])

    def test_ranges_are_of_the_coding(self):
        packed = self.read("page.html.gz")
        got = self.ask("/page.html", "Accept-Encoding: gzip", "Range: bytes=100-999")
        self.assertEqual((206, "gzip", f"bytes 100-999/{len(packed)}", packed[100:1000]),
                         (got.status, got["content-encoding"], got["content-range"], got.body))
        got = self.ask("/page.html", "Accept-Encoding: gzip", "Range: bytes=0-9,20-29")
        self.assertEqual(206, got.status)
        self.assertIn(b"\r\ncontent-type: text/html\r\n", got.body)
        self.assertIn(packed[20:30], got.body)

    def test_curl_unpacks(self):
        out = self.curl("--compressed", self.world.url("/page.html"), text=False)
        self.assertEqual(self.page, out)

    def test_some_and_old_ones(self):
        got = self.ask("/half.html", "Accept-Encoding: br, zstd, gzip")
        self.assertEqual("gzip", got["content-encoding"])
        gzip = "Accept-Encoding: gzip"
        date = until("its date", lambda: self.ask("/half.html", gzip)["last-modified"])
        self.assertEqual("Sun, 06 Nov 1994 08:49:42 GMT", date)
        got = self.ask("/old.html", "Accept-Encoding: br, zstd, gzip")
        self.assertEqual((None, None), (got["content-encoding"], got["vary"]),
                         "siblings from before the file was changed")

    def test_asked_by_name_it_is_a_file(self):
        got = self.ask("/page.html.gz", "Accept-Encoding: gzip")
        self.assertEqual((200, None, "application/gzip", None),
                         (got.status, got["content-encoding"], got["content-type"], got["vary"]))
        self.assertEqual(self.read("page.html.gz"), got.body)


class NoSiblings(OriginCase):
    options = ("--no-precompressed",)

    @classmethod
    def prepare(cls):
        cls.write("page.html", b"plain")
        cls.write("page.html.gz", b"packed")

    def test_as_it_is(self):
        got = self.ask("/page.html", "Accept-Encoding: gzip")
        self.assertEqual((b"plain", None, None), (got.body, got["content-encoding"], got["vary"]))


class Options(OriginCase):
    """Lists, index, error pages, media types."""

    @classmethod
    def prepare(cls):
        types = os.path.join(cls.world.scratch, "mime.types")
        with open(types, "w") as f:
            f.write("# ours\napplication/x-nightjar\tnj njx\ntext/x-bird bird\n")
        cls.world.options += ["--listing", "--index", "start.html", "--mime-types", types,
                              "--cache-control", "no-cache",
                              "--error-page", "404=/errors/404.html",
                              "--error-page", "405=/errors/405.txt",
                              "--error-page", "412=/errors/412.txt",
                              "--error-page", "416=/errors/416.txt"]
        for folder in ("errors", "list", "list/sub", "indexed", "list/.hidden"):
            os.mkdir(os.path.join(cls.root, folder))
        cls.write("errors/404.html", b"<p>not here</p>\n")
        cls.write("errors/405.txt", b"not so\n")
        cls.write("errors/412.txt", b"not that one\n")
        cls.write("errors/416.txt", b"not there\n")
        cls.write("indexed/start.html", b"<p>start</p>\n")
        cls.write("list/a <b>&\".txt", b"abc", MODIFIED)
        cls.write("list/.secret", b"dotfile")
        for name in ("x.nj", "x.NJX", "x.bird", "x.html", "x.unknown"):
            cls.write(name, b"x")

    def test_index(self):
        got = self.ask("/indexed/")
        self.assertEqual((200, b"<p>start</p>\n"), (got.status, got.body))
        got = self.ask("/indexed?a=b")
        self.assertEqual((301, "/indexed/?a=b"), (got.status, got["location"]))

    def test_list_as_html(self):
        got = self.ask("/list/")
        self.assertEqual((200, "text/html; charset=utf-8", "accept"),
                         (got.status, got["content-type"], got["vary"]))
        text = got.body.decode()
        self.assertIn("a &lt;b&gt;&amp;", text)
        self.assertIn("sub/", text)
        self.assertNotIn("secret", text)
        self.assertNotIn("hidden", text)
        self.assertNotIn("<b>", text)
        for name in ("etag", "last-modified", "cache-control", "accept-ranges"):
            self.assertIsNone(got[name], name)

    def test_list_as_json(self):
        got = self.ask("/list/", "Accept: application/json")
        self.assertEqual((200, "application/json", "accept"),
                         (got.status, got["content-type"], got["vary"]))
        text = got.body.decode()
        self.assertIn("a <b>&\\\".txt", text)
        self.assertTrue(json.loads(text))
        self.assertNotIn("secret", text)

    def test_list_of_the_root_and_of_nothing(self):
        self.assertIn(b"indexed/", self.ask("/").body)
        self.assertEqual(404, self.ask("/nowhere/").status)
        self.assertEqual(404, self.ask("/list/.hidden/").status)

    def test_error_pages(self):
        for path in ("/none", "/list/.secret", "/.git/config"):
            got = self.ask(path)
            self.assertEqual((404, "text/html", b"<p>not here</p>\n", None),
                             (got.status, got["content-type"], got.body, got["cache-control"]))
        got = self.ask("/none", method="HEAD")
        self.assertEqual((404, "16"), (got.status, got["content-length"]))
        got = self.ask("/x.nj", method="POST")
        self.assertEqual((405, b"not so\n", "GET, HEAD, OPTIONS"),
                         (got.status, got.body, got["allow"]))
        got = self.ask("/x.nj", "Range: bytes=9-")
        self.assertEqual((416, b"not there\n", "bytes */1"),
                         (got.status, got.body, got["content-range"]))
        got = self.ask("/errors/404.html")
        self.assertEqual(200, got.status, "by its name it is a file")
        got = self.ask("/%zz")
        self.assertEqual((400, b"400 Bad Request\n"), (got.status, got.body))

    def test_an_error_page_that_is_gone(self):
        got = self.ask("/x.nj", 'If-Match: "a"')
        self.assertEqual((412, b"not that one\n"), (got.status, got.body))
        os.remove(os.path.join(self.root, "errors/412.txt"))
        # What is known of a name is good for a second.
        until("a line of text in its place", lambda: self.ask("/x.nj", 'If-Match: "a"').body ==
              b"412 Precondition Failed\n")

    def test_media_types(self):
        for name, want in (("x.nj", "application/x-nightjar"), ("x.NJX", "application/x-nightjar"),
                           ("x.bird", "text/x-bird"), ("x.html", "text/html"),
                           ("x.unknown", "application/octet-stream")):
            self.assertEqual(want, self.ask("/" + name)["content-type"])

    def test_options(self):
        for path, args in (("/", ()), ("/none", ()), ("/", ("--request-target", "*"))):
            got = Response(self.curl("-i", "-X", "OPTIONS", *args, self.world.url(path),
                                     text=False))
            self.assertEqual((204, "GET, HEAD, OPTIONS", b""),
                             (got.status, got["allow"], got.body))

    def test_a_body_that_comes_with_get_is_ignored(self):
        got = self.curl("-X", "GET", "--data-binary", "x" * 30_000, self.world.url("/x.nj"))
        self.assertEqual("x", got)
