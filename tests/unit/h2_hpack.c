/* SPDX-License-Identifier: BSD-3-Clause */
/* HPACK (RFC 7541): the examples of the RFC, input that a decoder must reject, the fields that our
 * encoder adds to the peer's table, and malformed fields compared with nghttp2's session. */
#include <criterion/criterion.h>
#include <stdio.h>

#include "base/compiler.h"
#include "support/hpack_both.h"

static struct nj_alloc alloc;
static struct nj__hpack_shared *shared;
static struct nj__hpack_decoder *in;
static struct nj__hpack_encoder *out;

static void begin(void)
{
    nj_alloc_init(&alloc, SIZE_MAX);
    shared = nj__hpack_shared_new(&alloc, &hpack_key);
    in = nj__hpack_decoder_new(shared);
    out = nj__hpack_encoder_new(shared);
    cr_assert(shared && in && out);
}

static void end(void)
{
    nj__hpack_decoder_free(in);
    nj__hpack_encoder_free(out);
    cr_assert_eq(nj__hpack_shared_free_scratch(shared), alloc.bytes_used);
    nj__hpack_shared_free(shared);
    cr_assert_eq(alloc.bytes_used, 0);
    nj_alloc_fini(&alloc);
}

TestSuite(h2_hpack, .init = begin, .fini = end);

/* ---- in ---- */

static size_t octets_of(const char *hex, uint8_t *to)
{
    size_t n = 0;
    unsigned octet;
    for (; *hex; hex += 2) {
        while (*hex == ' ')
            hex++;
        cr_assert_eq(sscanf(hex, "%2x", &octet), 1);
        to[n++] = (uint8_t)octet;
    }
    return n;
}

/* The block's fields as lines, and the last result of nj__hpack_decode_next(). */
static int decode(const uint8_t *block, size_t n, char *lines, size_t room)
{
    struct nj__hpack_field f;
    size_t at = 0;
    int rv;
    lines[0] = 0;
    nj__hpack_decode_begin(in, block, n);
    while ((rv = nj__hpack_decode_next(in, &f)) == 1 && at < room)
        at += (size_t)snprintf(lines + at, room - at, "%.*s: %.*s\n", (int)f.name.n_bytes, f.name.p,
                               (int)f.value.n_bytes, f.value.p);
    return rv;
}

static void expect_block(const char *hex, const char *fields, unsigned size)
{
    uint8_t block[1024];
    char lines[1024];
    cr_expect_eq(decode(block, octets_of(hex, block), lines, sizeof lines), 0, "%s", hex);
    cr_expect_str_eq(lines, fields);
    cr_expect_eq(in->size, size, "%s: table of %u", hex, in->size);
}

static int broken(const char *hex)
{
    uint8_t block[64];
    char lines[256];
    return decode(block, octets_of(hex, block), lines, sizeof lines);
}

/* The fields of both forms of C.3 and C.4, and of C.5 and C.6. */
#define FIRST  ":method: GET\n:scheme: http\n:path: /\n:authority: www.example.com\n"
#define SECOND FIRST "cache-control: no-cache\n"
#define THIRD                                                                                      \
    ":method: GET\n:scheme: https\n:path: /index.html\n:authority: www.example.com\n"              \
    "custom-key: custom-value\n"
#define ANSWER(status, at)                                                                         \
    ":status: " status "\ncache-control: private\ndate: Mon, 21 Oct 2013 20:13:" at " GMT\n"

/* RFC 7541 C.2: each representation once. */
Test(h2_hpack, representations)
{
    expect_block("400a 6375 7374 6f6d 2d6b 6579 0d63 7573 746f 6d2d 6865 6164 6572",
                 "custom-key: custom-header\n", 55);
    expect_block("040c 2f73 616d 706c 652f 7061 7468", ":path: /sample/path\n", 55);
    expect_block("1008 7061 7373 776f 7264 0673 6563 7265 74", "password: secret\n", 55);
    expect_block("82", ":method: GET\n", 55);
}

/* RFC 7541 C.1.3 and 5.1: 1337, as a limit above it and as an index without an entry. */
Test(h2_hpack, numbers)
{
    cr_expect_eq(broken("1f9a0a"), -1);
    expect_block("3f9a0a", "", 0);
    cr_expect_eq(in->limit, 1337);
    cr_expect_eq(broken("3fe19f80800082"), 0, "4,096 with zeros in front");
    cr_expect_eq(in->limit, 4096);
}

/* RFC 7541 C.3, C.4. */
Test(h2_hpack, requests)
{
    expect_block("8286 8441 0f77 7777 2e65 7861 6d70 6c65 2e63 6f6d", FIRST, 57);
    expect_block("8286 84be 5808 6e6f 2d63 6163 6865", SECOND, 110);
    expect_block("8287 85bf 400a 6375 7374 6f6d 2d6b 6579 0c63 7573 746f 6d2d 7661 6c75 65", THIRD,
                 164);
}

Test(h2_hpack, requests_coded)
{
    expect_block("8286 8441 8cf1 e3c2 e5f2 3a6b a0ab 90f4 ff", FIRST, 57);
    expect_block("8286 84be 5886 a8eb 1064 9cbf", SECOND, 110);
    expect_block("8287 85bf 4088 25a8 49e9 5ba9 7d7f 8925 a849 e95b b8e8 b4bf", THIRD, 164);
}

/* RFC 7541 C.5, C.6: a table of 256 octets, from which entries go. */
Test(h2_hpack, responses)
{
    expect_block("3fe101 4803 3330 3258 0770 7269 7661 7465 611d 4d6f 6e2c 2032 3120 4f63 7420 "
                 "3230 3133 2032 303a 3133 3a32 3120 474d 546e 1768 7474 7073 3a2f 2f77 7777 2e65 "
                 "7861 6d70 6c65 2e63 6f6d",
                 ANSWER("302", "21") "location: https://www.example.com\n", 222);
    expect_block("4803 3330 37c1 c0bf", ANSWER("307", "21") "location: https://www.example.com\n",
                 222);
    expect_block("88c1 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133 2032 303a 3133 3a32 3220 474d "
                 "54c0 5a04 677a 6970 7738 666f 6f3d 4153 444a 4b48 514b 425a 584f 5157 454f 5049 "
                 "5541 5851 5745 4f49 553b 206d 6178 2d61 6765 3d33 3630 303b 2076 6572 7369 6f6e "
                 "3d31",
                 ANSWER("200", "22") "location: https://www.example.com\ncontent-encoding: gzip\n"
                                     "set-cookie: foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; "
                                     "version=1\n",
                 215);
}

Test(h2_hpack, responses_coded)
{
    expect_block(
        "3fe101 4882 6402 5885 aec3 771a 4b61 96d0 7abe 9410 54d4 44a8 2005 9504 0b81 66e0 "
        "82a6 2d1b ff6e 919d 29ad 1718 63c7 8f0b 97c8 e9ae 82ae 43d3",
        ANSWER("302", "21") "location: https://www.example.com\n", 222);
    expect_block("4883 640e ffc1 c0bf", ANSWER("307", "21") "location: https://www.example.com\n",
                 222);
}

/* RFC 7541 2.3.3, 4.2, 5.1, 5.2, 6.1, 6.3. */
Test(h2_hpack, errors)
{
    static const struct {
        const char *what, *hex;
    } blocks[] = {
        {"index 0", "80"},
        {"an index behind the static table, which is all", "be"},
        {"the name of such", "7e0161"},
        {"the name of such, not inserted", "0f2f0161"},
        {"a number without an end", "ff80"},
        {"a number of more than 32 bits", "ffffffffff7f"},
        {"zeros without an end", "ff80808080808000"},
        {"a literal without a name", "40"},
        {"a literal without a value", "4001 61"},
        {"a name longer than the block", "4003 6161"},
        {"a value longer than the block", "4001 6102 61"},
        {"a length without an end", "4001 617f"},
        {"an update above our limit", "3fe21f"},
        {"an update behind a field", "8220"},
        {"three updates", "202020"},
        {"padding of eight ones", "4001 6182 1fff"},
        {"padding with zeros", "4001 6181 18"},
        {"nothing but padding", "4001 6181 ff"},
        {"EOS", "4001 6184 ffff ffff"},
        {"EOS within", "4001 6189 ffff ffff 1818 1818 1f"},
    };
    for (size_t i = 0; i < NJ_ARRAY_LEN(blocks); i++)
        cr_expect_eq(broken(blocks[i].hex), -1, "%s", blocks[i].what);
    cr_expect_eq(broken("4001 6181 1f"), 0, "the same with good padding");
    cr_expect_eq(broken("2020"), 0, "two updates");
    cr_expect_eq(broken("3fe11f"), 0, "an update to our limit");
}

/* RFC 7541 4.4: an entry too large for the table empties it, and is shown all the same. */
Test(h2_hpack, too_large_for_the_table)
{
    expect_block("3f21 4001 6101 62", "a: b\n", 34);
    expect_block("be 4001 6122 3030 3030 3030 3030 3030 3030 3030 3030 3030 3030 3030 3030 3030 "
                 "3030 3030 3030 3030",
                 "a: b\na: 0000000000000000000000000000000000\n", 0);
    cr_expect_eq(broken("be"), -1);
}

/* Shown fields are valid until the block ends, for any following fields. */
Test(h2_hpack, shown_and_evicted)
{
    static uint8_t block[120000];
    struct nj__hpack_field first, f;
    char value[64];
    size_t n = 0;
    uint32_t n_fields = 0;
    broken("4004 6b65 6570 056f 7468 6572");
    block[n++] = 0xbe; /* keep: other */
    for (uint32_t i = 0; i < 2500; i++) {
        int len = snprintf(value, sizeof value, "value %u with something behind it", i);
        memcpy(block + n, "\x40\x01x", 3);
        block[n + 3] = (uint8_t)len;
        memcpy(block + n + 4, value, (size_t)len);
        n += 4 + (size_t)len;
        block[n++] = 0xbe;
    }
    nj__hpack_decode_begin(in, block, n);
    cr_assert_eq(nj__hpack_decode_next(in, &first), 1);
    while (nj__hpack_decode_next(in, &f) == 1)
        n_fields++;
    cr_expect_eq(n_fields, 5000);
    cr_expect(nj_str_eq(first.name, NJ_STR("keep")) && nj_str_eq(first.value, NJ_STR("other")));
    cr_expect_lt(alloc.bytes_used, shared->n_bytes + 3 * n, "the block bounds the evicted fields");
    nj__hpack_decode_begin(in, block, 0);
    cr_expect_lt(alloc.bytes_used, shared->n_bytes + 6500, "and the next one frees them");
}

/* Memory of a connection: only its head at first, and less than 768 bytes with the fields of a
 * browser. */
Test(h2_hpack, memory_of_a_connection)
{
    static const struct {
        const char *name, *value;
    } fields[] = {
        {"\x41", "www.example.org"},
        {"\x7a", "Mozilla/5.0 (X11; Linux x86_64; rv:109.0) Gecko/20100101 Firefox/115.0"},
        {"\x53", "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8"},
        {"\x51", "en-US,en;q=0.5"},
        {"\x50", "gzip, deflate, br"},
    };
    uint8_t block[1024];
    char lines[1024];
    size_t n = 0, without = alloc.bytes_used;
    struct nj__hpack_decoder *other = nj__hpack_decoder_new(shared);
    size_t head = alloc.bytes_used - without;
    nj__hpack_decoder_free(other);
    cr_expect_leq(head, 64);
    cr_expect_eq(decode((const uint8_t *)"\x82\x86\x84\x01\1h", 6, lines, sizeof lines), 0);
    cr_expect_eq(alloc.bytes_used, without, "no table without an entry");
    for (size_t i = 0; i < NJ_ARRAY_LEN(fields); i++) {
        size_t len = strlen(fields[i].value);
        block[n++] = (uint8_t)fields[i].name[0];
        block[n++] = (uint8_t)len;
        memcpy(block + n, fields[i].value, len);
        n += len;
    }
    cr_expect_eq(decode(block, n, lines, sizeof lines), 0);
    cr_expect_eq(nj__hpack_n_entries(in), 5);
    cr_expect_leq(head + alloc.bytes_used - without, 768);
    cr_expect_eq(broken("20"), 0);
    cr_expect_eq(alloc.bytes_used, without, "no table of no size");
}

/* Each allocation fails once. */
Test(h2_hpack, no_memory_in)
{
    uint8_t block[40000];
    char lines[64];
    size_t n = 0;
    for (uint32_t i = 0; i < 400; i++) { /* a name that needs scratch, and entries to be shown */
        memcpy(block + n, "\x40\x82\x1c\x64\x1fxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\xbe", 37);
        n += 37;
    }
    memcpy(block + n, "\x00\x7f\x82\x7f", 4);
    block[n + 1] = 0xff; /* 16,385 octets of code: '0', beyond the initial buffer */
    n += 4;
    memset(block + n, 0, 16385);
    n += 16385;
    memcpy(block + n, "\x01x", 2);
    n += 2;
    unsigned n_failed = 0;
    for (uint64_t k = 1; k < 200; k++) {
        alloc.fail_countdown = k;
        int rv = decode(block, n, lines, sizeof lines - 63);
        struct nj__hpack_field f;
        while (rv == 1)
            rv = nj__hpack_decode_next(in, &f);
        bool failed = alloc.fail_countdown == 0;
        alloc.fail_countdown = 0;
        cr_assert_eq(rv, failed ? -2 : 0, "allocation %lu", (unsigned long)k);
        n_failed += failed;
        nj__hpack_decoder_free(in);
        in = nj__hpack_decoder_new(shared);
        cr_assert(in);
        if (!failed)
            break;
    }
    cr_expect_gt(n_failed, 5);
    alloc.fail_countdown = 1;
    cr_expect_null(nj__hpack_decoder_new(shared));
    alloc.fail_countdown = 1;
    cr_expect_null(nj__hpack_encoder_new(shared));
    alloc.fail_countdown = 1;
    cr_expect_null(nj__hpack_shared_new(&alloc, &hpack_key));
}

/* ---- valid and malformed fields ---- */

static int on_header(nghttp2_session *s, const nghttp2_frame *f, const uint8_t *name, size_t n_name,
                     const uint8_t *value, size_t n_value, uint8_t flags, void *user)
{
    return 0;
}

static int on_invalid(nghttp2_session *s, const nghttp2_frame *f, nghttp2_rcbuf *name,
                      nghttp2_rcbuf *value, uint8_t flags, void *user)
{
    *(bool *)user = true;
    return 0;
}

static int on_end(nghttp2_session *s, const nghttp2_frame *f, int error, void *user)
{
    *(bool *)user = true;
    return 0;
}

static nghttp2_session *their_session(bool *bad)
{
    nghttp2_session_callbacks *callbacks;
    nghttp2_session *s;
    cr_assert_eq(nghttp2_session_callbacks_new(&callbacks), 0);
    nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
    nghttp2_session_callbacks_set_on_invalid_header_callback2(callbacks, on_invalid);
    nghttp2_session_callbacks_set_on_invalid_frame_recv_callback(callbacks, on_end);
    cr_assert_eq(nghttp2_session_server_new(&s, callbacks, bad), 0);
    nghttp2_session_callbacks_del(callbacks);
    return s;
}

/* A server session of nghttp2 that receives a request of this field alone: it reports a malformed
 * field as soon as the field arrives, although the request never ends. */
static bool malformed_to_them(struct nj_str name, struct nj_str value)
{
    static const uint8_t hello[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0";
    bool bad = false;
    uint8_t frame[256] = {0, 0, 0, 1 /* HEADERS */, 0, 0, 0, 0, 1}, *at = frame + 9;
    nghttp2_session *s = their_session(&bad);
    nghttp2_session_mem_recv(s, hello, sizeof hello);
    *at++ = 0;
    *at++ = (uint8_t)name.n_bytes;
    memcpy(at, name.p, name.n_bytes);
    at += name.n_bytes;
    *at++ = (uint8_t)value.n_bytes;
    memcpy(at, value.p, value.n_bytes);
    at += value.n_bytes;
    frame[2] = (uint8_t)(at - frame - 9);
    nghttp2_session_mem_recv(s, frame, (size_t)(at - frame));
    nghttp2_session_del(s);
    return bad;
}

static bool malformed_to_us(struct nj_str name, struct nj_str value)
{
    uint8_t block[256], *at = block;
    struct nj__hpack_field f, again;
    *at++ = 0x40;
    *at++ = (uint8_t)name.n_bytes;
    memcpy(at, name.p, name.n_bytes);
    at += name.n_bytes;
    *at++ = (uint8_t)value.n_bytes;
    memcpy(at, value.p, value.n_bytes);
    at += value.n_bytes;
    *at++ = 0xbe; /* and from the table */
    nj__hpack_decode_begin(in, block, (size_t)(at - block));
    cr_assert_eq(nj__hpack_decode_next(in, &f), 1);
    cr_assert_eq(nj__hpack_decode_next(in, &again), 1);
    cr_assert_eq(f.malformed, again.malformed);
    cr_assert_eq(f.token, again.token);
    return f.malformed;
}

static unsigned n_malformed;
/* Newer releases of nghttp2 find userinfo malformed; request_head.c answers it with 400. */
static void expect_same(struct nj_str name, struct nj_str value)
{
    bool host = nj_str_eq(name, NJ_STR(":authority")) || nj_str_eq(name, NJ_STR("host"));
    bool ours = malformed_to_us(name, value);
    if (host && !ours && memchr(value.p, '@', value.n_bytes))
        return;
    cr_expect_eq(ours, malformed_to_them(name, value), "%.*s: %.*s (%02x)", (int)name.n_bytes,
                 name.p, (int)value.n_bytes, value.p, value.n_bytes ? (uint8_t)value.p[0] : 0);
    n_malformed += ours;
}

/* Each octet in names and in values, at the beginning, within and at the end, near and far from
 * others. Octets that nghttp2 accepts are accepted, and no others. */
Test(h2_hpack, malformed_as_for_nghttp2, .timeout = 60)
{
    static const struct nj_str names[] = {NJ_STR_INIT(":method"), NJ_STR_INIT(":scheme"),
                                          NJ_STR_INIT(":path"),   NJ_STR_INIT(":authority"),
                                          NJ_STR_INIT("host"),    NJ_STR_INIT("accept"),
                                          NJ_STR_INIT("x-any")};
    for (unsigned octet = 0; octet < 256; octet++) {
        char c = (char)octet;
        char within[] = {'a', c, 'b'}, first[] = {c, 'b'}, last[] = {'a', c},
             far[] = "abcdefghijklmnopqrstu";
        far[octet % (sizeof far - 1)] = c;
        const struct nj_str texts[] = {
            {within, 3}, {first, 2}, {last, 2}, {&c, 1}, {far, sizeof far - 1}};
        for (size_t t = 0; t < NJ_ARRAY_LEN(texts); t++) {
            for (size_t i = 0; i < NJ_ARRAY_LEN(names); i++)
                expect_same(names[i], texts[t]);
            if (texts[t].p[0] != ':') /* no pseudo field but the known ones */
                expect_same(texts[t], NJ_STR("value"));
        }
    }
    for (size_t i = 0; i < NJ_ARRAY_LEN(names); i++)
        expect_same(names[i], NJ_STR(""));
    expect_same(NJ_STR(""), NJ_STR("value"));
    cr_expect_gt(n_malformed, 1000);
}

/* RFC 9113 8.2.2, 8.3: names with a meaning for the engine, in each representation. */
Test(h2_hpack, tokens)
{
    static const struct {
        const char *name;
        enum nj__token token;
    } names[] = {
        {":method", NJ__TOKEN_METHOD},
        {":scheme", NJ__TOKEN_SCHEME},
        {":authority", NJ__TOKEN_AUTHORITY},
        {":path", NJ__TOKEN_PATH},
        {":status", NJ__TOKEN_STATUS},
        {":protocol", NJ__TOKEN_PSEUDO_OTHER},
        {":", NJ__TOKEN_PSEUDO_OTHER},
        {"host", NJ__TOKEN_HOST},
        {"content-length", NJ__TOKEN_CONTENT_LENGTH},
        {"te", NJ__TOKEN_TE},
        {"priority", NJ__TOKEN_PRIORITY},
        {"connection", NJ__TOKEN_CONN_SPECIFIC},
        {"proxy-connection", NJ__TOKEN_CONN_SPECIFIC},
        {"keep-alive", NJ__TOKEN_CONN_SPECIFIC},
        {"transfer-encoding", NJ__TOKEN_CONN_SPECIFIC},
        {"upgrade", NJ__TOKEN_CONN_SPECIFIC},
        {"expect", NJ__TOKEN_EXPECT},
        {"hosts", NJ__TOKEN_OTHER},
        {"tea", NJ__TOKEN_OTHER},
    };
    for (size_t i = 0; i < NJ_ARRAY_LEN(names); i++) {
        struct nj_str name = {names[i].name, (uint32_t)strlen(names[i].name)};
        cr_expect_eq(nj__hpack_token_of(name), names[i].token, "%s", names[i].name);
    }
    for (uint32_t i = 1; i <= NJ__HPACK_N_STATIC; i++)
        cr_expect_eq(nj__hpack_static[i].token, nj__hpack_token_of(nj__hpack_static[i].name));
    for (unsigned row = 2; nj__hpack_names[row].n_bytes < 27; row++) {
        struct nj_str name = {nj__hpack_names[row].name, nj__hpack_names[row].n_bytes};
        cr_expect_eq(nj__hpack_response_name_row(shared, name), row);
    }
}

/* ---- out ---- */

static const struct nj_field site[] = {
    {NJ_STR_INIT("server"), NJ_STR_INIT("nightjar")},
    {NJ_STR_INIT("date"), NJ_STR_INIT("Sun, 22 Nov 2026 03:48:00 GMT")},
    {NJ_STR_INIT("content-type"), NJ_STR_INIT("text/html; charset=utf-8")},
    {NJ_STR_INIT("content-length"), NJ_STR_INIT("128")},
    {NJ_STR_INIT("last-modified"), NJ_STR_INIT("Sat, 21 Nov 2026 00:00:00 GMT")},
    {NJ_STR_INIT("etag"), NJ_STR_INIT("\"1-80\"")},
    {NJ_STR_INIT("accept-ranges"), NJ_STR_INIT("bytes")},
};

static size_t encode(uint16_t status, const struct nj_field *fields, size_t n, uint8_t *to)
{
    size_t n_bytes = nj__hpack_encode(out, to, status, fields, n, 0);
    cr_assert_leq(n_bytes, nj__hpack_bound(fields, n));
    return n_bytes;
}

/* A field that differs between responses is a literal without indexing; each other field takes one
 * octet. */
Test(h2_hpack, second_response)
{
    uint8_t b[512];
    encode(200, site, NJ_ARRAY_LEN(site), b);
    size_t n = encode(200, site, NJ_ARRAY_LEN(site), b);
    static const uint8_t second[] = "\x88\xc1\xc0\xbf\x0f\x0d\x03"
                                    "128"
                                    "\x0f\x1d\x1dSat, 21 Nov 2026 00:00:00 GMT"
                                    "\x0f\x13\6\"1-80\"\xbe";
    cr_assert_eq(n, sizeof second - 1);
    cr_expect_arr_eq(b, second, n);
}

/* ---- out, heads with a stamp ---- */

static size_t stamped(uint64_t stamp, const struct nj_field *fields, size_t n, uint8_t *to)
{
    return nj__hpack_encode(out, to, 200, fields, n, stamp);
}

/* The same block as the encoder would make, if the peer's table has its fields, at any index. */
Test(h2_hpack, again)
{
    uint8_t b[512], again[512];
    cr_expect_eq(nj__hpack_put_cached_block(out, b, 1), 0);
    stamped(1, site, NJ_ARRAY_LEN(site), b);
    cr_expect_eq(nj__hpack_put_cached_block(out, b, 1), 0, "the first went into the table");
    size_t n = stamped(1, site, NJ_ARRAY_LEN(site), b);
    cr_expect_eq(nj__hpack_put_cached_block(out, again, 1), n);
    cr_expect_arr_eq(again, b, n);
    cr_expect_eq(nj__hpack_put_cached_block(out, again, 1 + NJ__HPACK_CACHED_BLOCKS), 0);

    struct nj__hpack_encoder *mine = out;
    out = nj__hpack_encoder_new(shared);
    cr_expect_eq(nj__hpack_put_cached_block(out, again, 1), 0, "another peer has none of them");
    const struct nj_field vary = {NJ_STR("vary"), NJ_STR("accept")};
    stamped(1, &site[2], 1, b);
    stamped(2, &vary, 1, b);
    stamped(1, site, NJ_ARRAY_LEN(site), b);
    cr_expect_eq(nj__hpack_put_cached_block(out, again, 1), n);
    encode(200, site, NJ_ARRAY_LEN(site), b);
    cr_expect_arr_eq(again, b, n, "its own indexes");
    nj__hpack_encoder_free(out);
    out = mine;
    cr_expect_eq(nj__hpack_put_cached_block(out, again, 1), n);
}

/* RFC 7541 4.2, 4.4: not before an update of the limit, and not after an eviction. */
Test(h2_hpack, again_with_another_limit)
{
    uint8_t b[512];
    for (int i = 0; i < 2; i++)
        stamped(1, site, NJ_ARRAY_LEN(site), b);
    cr_expect_gt(nj__hpack_put_cached_block(out, b, 1), 0);
    nj__hpack_encoder_limit(out, 4000);
    cr_expect_eq(nj__hpack_put_cached_block(out, b, 1), 0, "the size update is first");
    encode(200, NULL, 0, b);
    cr_expect_gt(nj__hpack_put_cached_block(out, b, 1), 0);
    nj__hpack_encoder_limit(out, 150);
    encode(200, NULL, 0, b);
    cr_expect_eq(nj__hpack_put_cached_block(out, b, 1), 0, "server was evicted");
}

/* A block is not noted if a field would enter the table next time, is secret or is too long. A
 * status without an octet is not noted either. */
Test(h2_hpack, again_of_what_cannot_be)
{
    static const char etag[NJ__HPACK_CACHED_BLOCK_MAX] = "too long";
    const struct nj_field fields[] = {{NJ_STR("x-frame-options"), NJ_STR("DENY")},
                                      {NJ_STR("set-cookie"), NJ_STR("a=b")},
                                      {NJ_STR("etag"), {etag, sizeof etag}}};
    uint8_t b[512];
    for (uint32_t i = 0; i < NJ_ARRAY_LEN(fields); i++) {
        stamped(1 + i, &fields[i], 1, b);
        cr_expect_eq(nj__hpack_put_cached_block(out, b, 1 + i), 0, "%s", fields[i].name.p);
    }
    struct nj_field many[NJ__HPACK_CACHED_INDEXES_MAX + 1];
    for (uint32_t i = 0; i < NJ_ARRAY_LEN(many); i++)
        many[i] = site[0];
    for (int i = 0; i < 2; i++)
        stamped(9, many, NJ_ARRAY_LEN(many), b);
    cr_expect_eq(nj__hpack_put_cached_block(out, b, 9), 0);
    for (int i = 0; i < 2; i++)
        nj__hpack_encode(out, b, 301, site, 1, 10);
    cr_expect_eq(nj__hpack_put_cached_block(out, b, 10), 0);
}

/* A field was replaced by another one, which then has its number. */
Test(h2_hpack, again_of_a_field_that_is_another)
{
    const struct nj_field mine = {NJ_STR("cache-control"), NJ_STR("no-store")};
    uint8_t b[512];
    char value[32];
    for (int i = 0; i < 2; i++)
        stamped(1, &mine, 1, b);
    uint32_t which = out->slots[0], tag = shared->cache_tags[which];
    cr_expect_eq(nj__hpack_put_cached_block(out, b, 1), 2);
    for (uint32_t i = 0; shared->cache_tags[which] == tag; i++) {
        if (i == 10 * NJ__HPACK_CACHE_FIELDS) /* all entries are taken: no other of its set is idle
                                               * from now on */
            for (uint32_t k = 1; k < NJ__HPACK_CACHE_WAYS; k++)
                shared->cached[which ^ k].n_holders++;
        int n = snprintf(value, sizeof value, "max-age=%u", i);
        const struct nj_field other = {NJ_STR("cache-control"), {value, (uint32_t)n}};
        encode(200, &other, 1, b);
        cr_assert_lt(i, 1u << 20);
    }
    for (uint32_t k = 1; k < NJ__HPACK_CACHE_WAYS; k++)
        shared->cached[which ^ k].n_holders--;
    cr_expect_eq(out->slots[(out->head - 1u) % NJ__HPACK_SLOTS], which);
    cr_expect_eq(nj__hpack_put_cached_block(out, b, 1), 0);
}

/* RFC 7541 7.1.3. */
Test(h2_hpack, cookies_enter_no_table)
{
    const struct nj_field cookie = {NJ_STR("set-cookie"), NJ_STR("a=b")};
    uint8_t b[64];
    for (int i = 0; i < 3; i++) {
        cr_expect_eq(encode(0, &cookie, 1, b), 6);
        cr_expect_arr_eq(b, "\x1f\x28\3a=b", 6);
    }
}

/* A field with an unknown name enters the table at its second occurrence. */
Test(h2_hpack, unknown_names_come_twice)
{
    const struct nj_field field = {NJ_STR("x-frame-options"), NJ_STR("DENY")};
    uint8_t b[64];
    cr_expect_eq(encode(0, &field, 1, b), 1 + 1 + 15 + 1 + 4);
    cr_expect_eq(b[0], 0);
    encode(0, &field, 1, b);
    cr_expect_eq(b[0], 0x40);
    cr_expect_eq(encode(0, &field, 1, b), 1);
    cr_expect_eq(b[0], 0xbe);
}

/* A new date replaces the previous one in the cache, but not in the peer's table. */
Test(h2_hpack, dates)
{
    uint8_t b[512];
    char text[] = "Sun, 22 Nov 2026 03:48:00 GMT";
    struct nj_field fields[] = {{NJ_STR("server"), NJ_STR("nightjar")},
                                {NJ_STR("date"), {text, 29}}};
    for (uint32_t s = 0; s < 60; s++) {
        text[23] = (char)('0' + s / 10);
        text[24] = (char)('0' + s % 10);
        encode(200, fields, 2, b);
        /* The peer would have it until 63 dates came; we remember 32 entries. */
        cr_expect(s == 0 || b[1] == 0x80 + 62 + s % NJ__HPACK_SLOTS, "%u: %02x", s, b[1]);
        size_t n = encode(200, fields, 2, b);
        cr_expect(s == NJ__HPACK_SLOTS - 1 ? n > 3 : n == 3, "%u: %zu", s, n);
        uint32_t held = 0;
        for (uint32_t i = 0; i < NJ__HPACK_CACHE_FIELDS; i++)
            held += shared->cached[i].n_holders;
        cr_expect_eq(held, 2);
    }
}

/* RFC 7541 4.2, 6.3: the least limit and the last; with none there is no table. */
Test(h2_hpack, limits)
{
    uint8_t b[512];
    encode(200, site, 1, b);
    nj__hpack_encoder_limit(out, 65536);
    cr_expect_eq(encode(200, site, 1, b), 2, "ours is 4,096, and stays");
    nj__hpack_encoder_limit(out, 0);
    cr_expect_eq(encode(200, NULL, 0, b), 2);
    cr_expect_arr_eq(b, "\x20\x88", 2);
    cr_expect_eq(encode(200, site, 1, b), 1 + 2 + 1 + 8);
    nj__hpack_encoder_limit(out, 100);
    nj__hpack_encoder_limit(out, 50);
    nj__hpack_encoder_limit(out, 200);
    cr_expect_gt(encode(200, site, 1, b), 7);
    cr_expect_arr_eq(b, "\x3f\x13\x3f\xa9\x01\x88\x76", 7);
    cr_expect_eq(encode(200, site, 1, b), 2);
}

/* Every place is taken: fields go out as they are, and come as they went. */
Test(h2_hpack, more_fields_than_places)
{
    enum { CONNS = 80, EACH = 30 };
    struct nj__hpack_encoder *conns[CONNS], *mine = out;
    uint32_t n_literals = 0;
    uint8_t b[128];
    char value[32];
    for (uint32_t c = 0; c < CONNS; c++) {
        out = conns[c] = nj__hpack_encoder_new(shared);
        cr_assert(out);
        for (uint32_t i = 0; i < EACH; i++) {
            int n = snprintf(value, sizeof value, "max-age=%u", c * EACH + i);
            const struct nj_field f = {NJ_STR("cache-control"), {value, (uint32_t)n}};
            encode(0, &f, 1, b);
            bool literal = b[0] == 0x0f;
            n_literals += literal;
            cr_expect_eq(encode(0, &f, 1, b) == 1, !literal);
        }
    }
    cr_expect_geq(n_literals, CONNS * EACH - NJ__HPACK_CACHE_FIELDS, "%u", n_literals);
    for (uint32_t c = 0; c < CONNS; c++)
        nj__hpack_encoder_free(conns[c]);
    const struct nj_field f = {NJ_STR("cache-control"), NJ_STR("max-age=new")};
    out = mine;
    encode(0, &f, 1, b);
    cr_expect_eq(b[0], 0x58, "an unused entry is free for another field");
}

/* A field for which the cache has no memory is sent as a literal. */
Test(h2_hpack, no_memory_out)
{
    uint8_t b[64];
    alloc.fail_countdown = 1;
    cr_expect_eq(encode(200, site, 1, b), 1 + 2 + 1 + 8);
    encode(200, site, 1, b);
    cr_expect_eq(b[1], 0x76);
    cr_expect_eq(encode(200, site, 1, b), 2);
}
