/* SPDX-License-Identifier: BSD-3-Clause */
/* RFC 7541 through the connection: header blocks as bytes. A block that can't be decoded is a
 * connection error COMPRESSION_ERROR (RFC 9113 4.3). */
#include "h2_rfc9113_rig.h"

struct bytes {
    const char *name;
    const char *p;
    size_t n;
};
#define BYTES(name, literal)                                                                       \
    {                                                                                              \
        (name), (literal), sizeof(literal) - 1                                                     \
    }
#define REQUEST "\x82\x86\x84\x41\1h" /* GET http / h; the authority is entry 62 from then on */

static void say_block(struct rfc *c, uint32_t id, const struct bytes *t)
{
    rfc_say(c, RFC_HEADERS, RFC_ENDS, id, t->p, t->n);
}

/* A good request comes first, so that there is an entry 62, and no entry 63. */
static void not_decoded(struct rfc *c, const void *arg)
{
    const struct bytes *t = arg;
    static const struct bytes first = BYTES("", REQUEST);
    snprintf(c->what, sizeof c->what, "%s: ", t->name);
    rfc_hello(c);
    say_block(c, 1, &first);
    rfc_go(c);
    rfc_expect_answer(c, 1);
    say_block(c, 3, t);
    rfc_go(c);
    rfc_expect_over(c, RFC_E_COMPRESSION);
    RFC_CHECK(c, c->n_shown == 1, "it is shown");
}

/* 2.3.3: "Indices strictly greater than the sum of the lengths of both tables MUST be treated as a
 * decoding error"; 6.1: "The index value of 0 is not used. It MUST be treated as a decoding error".
 * 4.2, 6.3: a size update is at the begin of a block and within the limit. 5.1, 5.2: integers and
 * strings end within the block; "A Huffman-encoded string literal containing the EOS symbol MUST be
 * treated as a decoding error", and so must padding of more than 7 bits, or not of its most
 * significant bits. */
Test(h2_rfc9113_hpack, errors)
{
    static const struct bytes blocks[] = {
        BYTES("index 0", "\x80"),
        BYTES("index 0 behind", REQUEST "\x80"),
        BYTES("index 63", "\x82\x86\x84\xbf"),
        BYTES("index 63 behind", "\x82\x86\x84\xbe\xc1"),
        BYTES("index 127", "\xff\x00"),
        BYTES("index 2^31", "\xff\x81\xff\xff\xff\x07"),
        BYTES("name index 63", "\x82\x86\x84\x7f\x00\1a"),
        BYTES("name index 64, not kept", "\x82\x86\x84\x0f\x31\1a"),
        BYTES("name index 64, never kept", "\x82\x86\x84\x1f\x31\1a"),
        BYTES("size 4097", "\x3f\xe2\x1f" REQUEST),
        BYTES("size 2^32", "\x3f\xe1\xff\xff\xff\x0f" REQUEST),
        BYTES("size behind a field", "\x82\x20\x86\x84\xbe"),
        BYTES("size at the end", REQUEST "\x20"),
        BYTES("integer too long", "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"),
        BYTES("index 2^32 + 2", "\xff\x83\xff\xff\xff\x0f\x86\x84\xbe"),
        BYTES("index 2^64 + 2", "\xff\x83\xff\xff\xff\xff\xff\xff\xff\xff\x01\x86\x84\xbe"),
        BYTES("integer without end", REQUEST "\xff"),
        BYTES("integer without end, later", REQUEST "\xff\x80\x80"),
        BYTES("name without length", REQUEST "\x40"),
        BYTES("name without bytes", REQUEST "\x40\x03"),
        BYTES("name too short", REQUEST "\x40\x03x-"),
        BYTES("no value", REQUEST "\x40\x03x-a"),
        BYTES("value without length", REQUEST "\x40\x03x-a\x7f"),
        BYTES("value too short", REQUEST "\x40\x03x-a\x05"
                                         "abcd"),
        BYTES("value of 2^32 + 1", REQUEST "\x40\x03x-a\x7f\x82\xff\xff\xff\x0f"
                                           "a"),
        BYTES("indexed name, no value", REQUEST "\x0f\x01"),
        BYTES("Huffman: too short", REQUEST "\x40\x03x-a\x83\x1f"),
        BYTES("Huffman: EOS", REQUEST "\x40\x03x-a\x84\xff\xff\xff\xff"),
        BYTES("Huffman: EOS within", REQUEST "\x40\x03x-a\x85\x1f\xff\xff\xff\xff"),
        BYTES("Huffman: 8 bits of padding", REQUEST "\x40\x03x-a\x82\x1f\xff"),
        BYTES("Huffman: padding alone", REQUEST "\x40\x03x-a\x81\xff"),
        BYTES("Huffman: padding of zeros", REQUEST "\x40\x03x-a\x81\x18"),
        BYTES("Huffman: padding with a zero", REQUEST "\x40\x03x-a\x81\x1b"),
        BYTES("Huffman: in a name", REQUEST "\x40\x81\x18\1a"),
    };
    for (size_t i = 0; i < NJ_ARRAY_LEN(blocks); i++)
        rfc_every_way(not_decoded, &blocks[i]);
}

/* The same for a block without an owner: its stream is closed or refused, or the block is trailers.
 */
static void not_decoded_for_nobody(struct rfc *c, const void *arg)
{
    int what = *(const int *)arg;
    snprintf(c->what, sizeof c->what, "for nobody, %d: ", what);
    c->hold = true;
    c->limits.concurrent_streams_max = 1;
    rfc_hello(c);
    rfc_post(c, 1);
    rfc_go(c);
    if (what == 0)
        nj_h2_reset_stream(rfc_stream(c, 1)->st, 8);
    rfc_go(c);
    rfc_say(c, RFC_HEADERS, RFC_ENDS, what == 2 ? 3 : 1, "\x80", 1);
    rfc_go(c);
    /* One stream too many may be an error of its own. */
    rfc_expect_over(c, what == 2 ? RFC_E_COMPRESSION | RFC_E_PROTOCOL : RFC_E_COMPRESSION);
}

Test(h2_rfc9113_hpack, errors_for_nobody)
{
    for (int what = 0; what < 3; what++)
        rfc_every_way(not_decoded_for_nobody, &what);
}

/* A malformed field first: the rest must be decoded, and is wrong. */
RFC_CASE(h2_rfc9113_hpack, error_behind_a_malformed_field)
{
    rfc_hello(c);
    rfc_say(c, RFC_HEADERS, RFC_ENDS, 1, "\x00\1X\1y\x82\x80", 7);
    rfc_go(c);
    rfc_expect_over(c, RFC_E_COMPRESSION);
}

/* ---- valid blocks ---- */

struct good {
    struct bytes bytes;
    const char *path, *authority;
};

/* A path in each form (6.1, 6.2.1 to 6.2.3), integers and strings in odd forms (5.1, 5.2). */
static void decoded(struct rfc *c, const void *arg)
{
    const struct good *t = arg;
    snprintf(c->what, sizeof c->what, "%s: ", t->bytes.name);
    rfc_hello(c);
    say_block(c, 1, &t->bytes);
    rfc_go(c);
    rfc_expect_answer(c, 1);
    struct rfc_stream *s = rfc_stream(c, 1);
    RFC_CHECK(c, strcmp(s->path, t->path) == 0, "path '%s'", s->path);
    RFC_CHECK(c, strcmp(s->authority, t->authority) == 0, "authority '%s'", s->authority);
    rfc_expect_alive(c);
}

Test(h2_rfc9113_hpack, forms)
{
    static const struct good blocks[] = {
        {BYTES("static", "\x82\x86\x85\x41\1h"), "/index.html", "h"},
        {BYTES("kept", "\x82\x86\x44\2/a\x41\1h"), "/a", "h"},
        {BYTES("not kept", "\x82\x86\x04\2/a\x01\1h"), "/a", "h"},
        {BYTES("never kept", "\x82\x86\x14\2/a\x11\1h"), "/a", "h"},
        {BYTES("new names", "\x82\x86\x40\5:path\2/a\x00\12:authority\1h"), "/a", "h"},
        {BYTES("new names, never kept", "\x82\x86\x10\5:path\2/a\x10\12:authority\1h"), "/a", "h"},
        {BYTES("path of index 5", "\x82\x86\x05\2/b\x41\1h"), "/b", "h"},
        {BYTES("Huffman", "\x82\x86\x84\x41\x8c\xf1\xe3\xc2\xe5\xf2\x3a\x6b\xa0\xab\x90\xf4\xff"),
         "/", "www.example.com"},
        {BYTES("Huffman, nothing", "\x82\x86\x84\x41\1h\x00\x03x-a\x80"), "/", "h"},
        {BYTES("Huffman, no padding", "\x82\x86\x84\x01\x85\x18\xc6\x31\x8c\x63"), "/", "aaaaaaaa"},
        {BYTES("size 200 first", "\x3f\xa9\x01\x82\x86\x84\x41\1h"), "/", "h"},
        {BYTES("size 4096 first", "\x3f\xe1\x1f\x82\x86\x84\x41\1h"), "/", "h"},
        {BYTES("two sizes first", "\x20\x3f\xe1\x1f\x82\x86\x84\x41\1h"), "/", "h"},
        {BYTES("length 127 and more",
               "\x82\x86\x84\x41\1h\x00\x03x-a\x7f\x01"
               "1234567890123456789012345678901234567890123456789012345678901234"
               "1234567890123456789012345678901234567890123456789012345678901234"),
         "/", "h"},
    };
    for (size_t i = 0; i < NJ_ARRAY_LEN(blocks); i++)
        rfc_every_way(decoded, &blocks[i]);
}

/* 5.1: redundant zero octets: a decoder may limit them. */
RFC_CASE(h2_rfc9113_hpack, integer_with_zeros)
{
    static const struct bytes block =
        BYTES("", REQUEST "\x00\x03x-a\x7f\x80\x80\x00"
                          "1234567890123456789012345678901234567890123456789012345678901234"
                          "123456789012345678901234567890123456789012345678901234567890123");
    rfc_hello(c);
    say_block(c, 1, &block);
    rfc_go(c);
    rfc_expect(c, 1, (struct rfc_may){.conn = RFC_E_COMPRESSION, .ignored = true});
    if (!c->over)
        rfc_expect_answer(c, 1);
}

/* RFC 7541 C.3 and C.4: three requests on one connection, plain and in Huffman's code, cut at every
 * place into CONTINUATIONs. */
static void appendix(struct rfc *c, const void *arg)
{
    static const struct bytes plain[] = {
        BYTES("", "\x82\x86\x84\x41\x0fwww.example.com"),
        BYTES("", "\x82\x86\x84\xbe\x58\x08no-cache"),
        BYTES("", "\x82\x87\x85\xbf\x40\x0a"
                  "custom-key\x0c"
                  "custom-value"),
    };
    static const struct bytes huffman[] = {
        BYTES("", "\x82\x86\x84\x41\x8c\xf1\xe3\xc2\xe5\xf2\x3a\x6b\xa0\xab\x90\xf4\xff"),
        BYTES("", "\x82\x86\x84\xbe\x58\x86\xa8\xeb\x10\x64\x9c\xbf"),
        BYTES("", "\x82\x87\x85\xbf\x40\x88\x25\xa8\x49\xe9\x5b\xa9\x7d\x7f\x89\x25\xa8\x49\xe9\x5b"
                  "\xb8\xe8\xb4\xbf"),
    };
    size_t step = *(const size_t *)arg;
    const struct bytes *t = step % 2 ? plain : huffman;
    snprintf(c->what, sizeof c->what, "C.%d cut by %zu: ", step % 2 ? 3 : 4, step / 2);
    step /= 2;
    rfc_hello(c);
    for (uint32_t i = 0; i < 3; i++) {
        for (size_t at = 0; at < t[i].n; at += step) {
            size_t n = t[i].n - at < step ? t[i].n - at : step;
            rfc_say(c, at ? RFC_CONTINUATION : RFC_HEADERS,
                    (at ? 0 : RFC_END_STREAM) | (at + n == t[i].n ? RFC_END_HEADERS : 0), 2 * i + 1,
                    t[i].p + at, n);
        }
    }
    rfc_go(c);
    for (uint32_t i = 0; i < 3; i++) {
        struct rfc_stream *s = rfc_stream(c, 2 * i + 1);
        rfc_expect_answer(c, s->id);
        RFC_CHECK(c, strcmp(s->authority, "www.example.com") == 0, "authority '%s'", s->authority);
        RFC_CHECK(c, strcmp(s->path, i == 2 ? "/index.html" : "/") == 0, "path '%s'", s->path);
        RFC_CHECK(c, strcmp(s->scheme, i == 2 ? "https" : "http") == 0, "scheme '%s'", s->scheme);
    }
    rfc_expect_alive(c);
}

Test(h2_rfc9113_hpack, appendix_c)
{
    for (size_t step = 2; step < 2 * 20; step++)
        rfc_every_way(appendix, &step);
}

/* ---- the table ---- */

/* A field x-a with `n` bytes of 'v', with incremental indexing. */
static void put_large(struct rfc_block *b, size_t n)
{
    static char value[8192];
    memset(value, 'v', sizeof value);
    rfc_put_field_n(b, 0x40, "x-a", 3, value, n);
}

static void say_after(struct rfc *c, uint32_t id, const char *block, size_t n)
{
    rfc_say(c, RFC_HEADERS, RFC_ENDS, id, block, n);
    rfc_go(c);
}

/* 4.1, 4.4: an entry costs its bytes and 32; the oldest go first, and only as many as must. The
 * table of 4096 holds ":path: /old" (9 + 32), and 4055 bytes beside it. */
static void eviction(struct rfc *c, bool fits)
{
    rfc_hello(c);
    rfc_say(c, RFC_HEADERS, RFC_ENDS, 1, "\x82\x86\x01\1h\x44\4/old", 11);
    struct rfc_block b = {.n = 0};
    rfc_put_bytes(&b, "\x82\x86\x84\x01\1h", 6);
    put_large(&b, 4096 - (5 + 4 + 32) - (3 + 32) + (fits ? 0 : 1));
    rfc_head_block(c, 3, RFC_ENDS, &b);
    rfc_go(c);
    rfc_expect_answer(c, 3);
    say_after(c, 5, "\x82\x86\x01\1h\xbf", 6); /* 63, the older of the two */
    if (!fits) {
        rfc_expect_over(c, RFC_E_COMPRESSION);
        return;
    }
    rfc_expect_answer(c, 5);
    RFC_CHECK(c, strcmp(rfc_stream(c, 5)->path, "/old") == 0, "path '%s'", rfc_stream(c, 5)->path);
    rfc_expect_alive(c);
}

RFC_CASE(h2_rfc9113_hpack, fits)
{
    eviction(c, true);
}

RFC_CASE(h2_rfc9113_hpack, evicts)
{
    eviction(c, false);
}

/* 4.4: "an attempt to add an entry larger than the maximum size causes the table to be emptied of
 * all existing entries and results in an empty table"; it is no error. */
RFC_CASE(h2_rfc9113_hpack, too_large_empties)
{
    rfc_hello(c);
    struct rfc_block b = {.n = 0};
    rfc_put_bytes(&b, REQUEST, 6);
    put_large(&b, 4096 - 3 - 32 + 1);
    rfc_head_block(c, 1, RFC_ENDS, &b);
    rfc_go(c);
    rfc_expect_answer(c, 1);
    rfc_expect_alive(c);
    say_after(c, c->id_next, "\x82\x86\x84\x01\1h\xc2", 7); /* the fifth: alive made four */
    rfc_expect_over(c, RFC_E_COMPRESSION);
}

/* 4.3: a smaller size evicts entries; a later larger one does not restore them. */
RFC_CASE(h2_rfc9113_hpack, size_evicts)
{
    rfc_hello(c);
    rfc_head_path(c, 1, RFC_ENDS, "/first");
    rfc_say(c, RFC_HEADERS, RFC_ENDS, 3, "\x82\x86\xbf\xbe", 4);
    rfc_say(c, RFC_HEADERS, RFC_ENDS, 5, "\x20\x3f\xe1\x1f\x82\x86\x84\x01\1h", 10);
    rfc_go(c);
    rfc_expect_answer(c, 3);
    rfc_expect_answer(c, 5);
    say_after(c, 7, "\x82\x86\x84\x01\1h\xbe", 7);
    rfc_expect_over(c, RFC_E_COMPRESSION);
}

/* Down to one entry: the newest stays. */
RFC_CASE(h2_rfc9113_hpack, size_keeps_the_newest)
{
    rfc_hello(c);
    rfc_head_path(c, 1, RFC_ENDS, "/newest");
    rfc_say(c, RFC_HEADERS, RFC_ENDS, 3, "\x3f\x0d\x82\x86\x01\1h\xbe", 8); /* 44 = 5 + 7 + 32 */
    rfc_go(c);
    rfc_expect_answer(c, 3);
    RFC_CHECK(c, strcmp(rfc_stream(c, 3)->path, "/newest") == 0, "path '%s'",
              rfc_stream(c, 3)->path);
    say_after(c, 5, "\x82\x86\x84\xbf", 4);
    rfc_expect_over(c, RFC_E_COMPRESSION);
}

/* 4.4: "A new entry can reference the name of an entry in the dynamic table that will be evicted
 * when adding this new entry". */
RFC_CASE(h2_rfc9113_hpack, name_of_the_evicted)
{
    rfc_hello(c);
    rfc_say(c, RFC_HEADERS, RFC_ENDS, 1, "\x3f\x10\x82\x86\x01\1h\x44\4/old", 13); /* 47 bytes */
    rfc_say(c, RFC_HEADERS, RFC_ENDS, 3, "\x82\x86\x01\1h\x7e\12/new/paths", 17);
    rfc_say(c, RFC_HEADERS, RFC_ENDS, 5, "\x82\x86\x01\1h\xbe", 6);
    rfc_go(c);
    for (uint32_t id = 3; id <= 5; id += 2) {
        rfc_expect_answer(c, id);
        RFC_CHECK(c, strcmp(rfc_stream(c, id)->path, "/new/paths") == 0, "path '%s'",
                  rfc_stream(c, id)->path);
    }
}

/* 6.2.2, 6.2.3: literals without indexing do not enter the table. */
RFC_CASE(h2_rfc9113_hpack, not_kept)
{
    rfc_hello(c);
    rfc_head_path(c, 1, RFC_ENDS, "/kept");
    rfc_say(c, RFC_HEADERS, RFC_ENDS, 3, "\x82\x86\x04\2/a\x11\1b", 9);
    rfc_head_newest(c, 5);
    rfc_go(c);
    rfc_expect_answer(c, 5);
    RFC_CHECK(c, strcmp(rfc_stream(c, 5)->path, "/kept") == 0, "path '%s'", rfc_stream(c, 5)->path);
    rfc_expect_alive(c);
}

/* Entries by the thousand, round and round, with the oldest and the newest looked at. */
RFC_CASE(h2_rfc9113_hpack, round_and_round)
{
    c->no_body = true;
    rfc_hello(c);
    uint32_t id = 1;
    for (uint32_t i = 0; i < 400; i++) {
        char path[24];
        snprintf(path, sizeof path, "/%016u", i); /* 17 + 5 + 32 = 54, and no authority beside */
        struct rfc_block b = {.n = 0};
        rfc_put_bytes(&b, "\x82\x86\x01\1h\x44", 6);
        rfc_put_string(&b, path, strlen(path));
        rfc_head_block(c, id, RFC_ENDS, &b);
        uint32_t n = i + 1 < 75 ? i + 1 : 75; /* 4096 / 54 */
        b.n = 0;
        rfc_put_bytes(&b, "\x82\x86\x01\1h", 5);
        rfc_put_int(&b, 0x80, 7, 61 + n);
        rfc_head_block(c, id + 2, RFC_ENDS, &b);
        rfc_go(c);
        snprintf(path, sizeof path, "/%016u", i + 1 - n);
        struct rfc_stream *s = rfc_stream(c, id + 2);
        RFC_CHECK(c, s->status == 200 && strcmp(s->path, path) == 0, "path '%s'", s->path);
        c->n_streams = 0; /* the rig need not remember them */
        c->n_shown = c->n_closed = 0;
        id += 4;
        if (c->over)
            return;
    }
    rfc_expect_alive(c);
}
