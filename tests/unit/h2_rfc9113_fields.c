/* SPDX-License-Identifier: BSD-3-Clause */
/* RFC 9113 8.2 and 8.3: valid and malformed fields of a request. */
#include "h2_rfc9113_rig.h"

enum verdict {
    GOOD,
    MALFORMED,
    EITHER, /* the RFC leaves the choice to the server, or says SHOULD */
};

struct request {
    const char *name; /* for the messages; NULL: made from the fields below */
    enum verdict verdict;
    const char *fields[14]; /* names and values by turns */
};

static void check_verdict(struct rfc *c, uint32_t id, enum verdict verdict)
{
    struct rfc_stream *s = rfc_stream(c, id);
    if (verdict == GOOD || (verdict == EITHER && s->shown)) {
        rfc_expect_answer(c, id);
        rfc_expect_alive(c);
    } else {
        rfc_expect_malformed(c, id);
    }
}

static void one_request(struct rfc *c, const void *arg)
{
    const struct request *t = arg;
    struct rfc_block b = {.n = 0};
    snprintf(c->what, sizeof c->what, "%s: ", t->name);
    for (size_t i = 0; i < NJ_ARRAY_LEN(t->fields) && t->fields[i]; i += 2)
        rfc_put_field(&b, t->fields[i], t->fields[i + 1]);
    rfc_hello(c);
    rfc_head_block(c, 1, RFC_ENDS, &b);
    rfc_go(c);
    check_verdict(c, 1, t->verdict);
}

static void all_requests(const struct request *t, size_t n)
{
    for (size_t i = 0; i < n; i++)
        rfc_every_way(one_request, &t[i]);
}

#define METHOD    ":method", "GET"
#define SCHEME    ":scheme", "http"
#define PATH      ":path", "/"
#define AUTHORITY ":authority", "host.example"

/* ---- 8.3 pseudo fields ---- */

/* "Endpoints MUST treat a request ... that contains undefined or invalid pseudo-header fields as
 * malformed"; "All pseudo-header fields MUST appear in a field block before all regular field
 * lines"; "The same pseudo-header field name MUST NOT appear more than once". */
Test(h2_rfc9113_pseudo, order_and_number)
{
    static const struct request requests[] = {
        {"in order", GOOD, {METHOD, SCHEME, AUTHORITY, PATH}},
        {"in another", GOOD, {PATH, AUTHORITY, SCHEME, METHOD, "x-a", "b"}},
        {"unknown", MALFORMED, {METHOD, SCHEME, AUTHORITY, PATH, ":other", "1"}},
        {"of a response", MALFORMED, {METHOD, SCHEME, AUTHORITY, PATH, ":status", "200"}},
        {"empty name", MALFORMED, {METHOD, SCHEME, AUTHORITY, PATH, ":", "1"}},
        {"upper case", MALFORMED, {":Method", "GET", SCHEME, AUTHORITY, PATH}},
        {":protocol unasked", MALFORMED, {METHOD, SCHEME, AUTHORITY, PATH, ":protocol", "x"}},
        {"behind a field", MALFORMED, {METHOD, SCHEME, AUTHORITY, "x-a", "b", PATH}},
        {"authority behind", MALFORMED, {METHOD, SCHEME, PATH, "x-a", "b", AUTHORITY}},
        {"unknown behind", MALFORMED, {METHOD, SCHEME, PATH, AUTHORITY, "x-a", "b", ":x", ""}},
        {"two methods", MALFORMED, {METHOD, METHOD, SCHEME, AUTHORITY, PATH}},
        {"two other methods", MALFORMED, {METHOD, ":method", "PUT", SCHEME, AUTHORITY, PATH}},
        {"two schemes", MALFORMED, {METHOD, SCHEME, SCHEME, AUTHORITY, PATH}},
        {"two paths", MALFORMED, {METHOD, SCHEME, AUTHORITY, PATH, PATH}},
        {"two authorities", MALFORMED, {METHOD, SCHEME, AUTHORITY, AUTHORITY, PATH}},
    };
    all_requests(requests, NJ_ARRAY_LEN(requests));
}

/* 8.3.1: "All HTTP/2 requests MUST include exactly one valid value for the ":method", ":scheme",
 * and
 * ":path" pseudo-header fields, unless they are CONNECT requests". */
Test(h2_rfc9113_pseudo, required)
{
    static const struct request requests[] = {
        {"nothing", MALFORMED, {NULL}},
        {"no pseudo field", MALFORMED, {"x-a", "b"}},
        {"no method", MALFORMED, {SCHEME, AUTHORITY, PATH}},
        {"no scheme", MALFORMED, {METHOD, AUTHORITY, PATH}},
        {"no path", MALFORMED, {METHOD, SCHEME, AUTHORITY}},
        {"host only", GOOD, {METHOD, SCHEME, PATH, "host", "host.example"}},
        {"no authority", EITHER, {METHOD, SCHEME, PATH}},
    };
    all_requests(requests, NJ_ARRAY_LEN(requests));
}

/* 8.3.1: "This pseudo-header field MUST NOT be empty for "http" or "https" URIs"; RFC 9110 9.1: a
 * method is a token; 7.2: "A server SHOULD treat a request as malformed if it contains a Host
 * header field that identifies an entity that differs". */
Test(h2_rfc9113_pseudo, values)
{
    static const struct request requests[] = {
        {"empty path", MALFORMED, {METHOD, SCHEME, AUTHORITY, ":path", ""}},
        {"path without slash", MALFORMED, {METHOD, SCHEME, AUTHORITY, ":path", "index.html"}},
        {"asterisk", GOOD, {":method", "OPTIONS", SCHEME, AUTHORITY, ":path", "*"}},
        {"asterisk of GET", EITHER, {METHOD, SCHEME, AUTHORITY, ":path", "*"}},
        {"query", GOOD, {METHOD, SCHEME, AUTHORITY, ":path", "/a/b?c=d&e=%20"}},
        {"fragment", EITHER, {METHOD, SCHEME, AUTHORITY, ":path", "/a#b"}},
        {"space in path", EITHER, {METHOD, SCHEME, AUTHORITY, ":path", "/a b"}},
        {"line feed in path", MALFORMED, {METHOD, SCHEME, AUTHORITY, ":path", "/a\nb"}},
        {"space behind path", MALFORMED, {METHOD, SCHEME, AUTHORITY, ":path", "/a "}},
        {"empty method", MALFORMED, {":method", "", SCHEME, AUTHORITY, PATH}},
        {"space in method", MALFORMED, {":method", "GE T", SCHEME, AUTHORITY, PATH}},
        {"own method", GOOD, {":method", "x-MY_own!", SCHEME, AUTHORITY, PATH}},
        {"carriage return in method", MALFORMED, {":method", "GET\r", SCHEME, AUTHORITY, PATH}},
        {"empty scheme", MALFORMED, {METHOD, ":scheme", "", AUTHORITY, PATH}},
        {"https", GOOD, {METHOD, ":scheme", "https", AUTHORITY, PATH}},
        {"own scheme", MALFORMED, {METHOD, ":scheme", "x-my+own", AUTHORITY, PATH}},
        {"ftp", MALFORMED, {METHOD, ":scheme", "ftp", AUTHORITY, PATH}},
        {"httpx", MALFORMED, {METHOD, ":scheme", "httpx", AUTHORITY, PATH}},
        {"htt", MALFORMED, {METHOD, ":scheme", "htt", AUTHORITY, PATH}},
        {"HTTPS", GOOD, {METHOD, ":scheme", "HTTPS", AUTHORITY, PATH}}, /* RFC 3986 3.1 */
        {"bad scheme", MALFORMED, {METHOD, ":scheme", "h/t", AUTHORITY, PATH}},
        {"port", GOOD, {METHOD, SCHEME, ":authority", "host.example:8080", PATH}},
        {"IPv6", GOOD, {METHOD, SCHEME, ":authority", "[2001:db8::1]:80", PATH}},
        {"user", MALFORMED, {METHOD, SCHEME, ":authority", "me@host.example", PATH}},
        {"no user", MALFORMED, {METHOD, SCHEME, ":authority", "@host.example", PATH}},
        {"user of host", MALFORMED, {METHOD, SCHEME, PATH, "host", "me:pw@host.example"}},
        {"empty authority", EITHER, {METHOD, SCHEME, ":authority", "", PATH}},
        {"line feed in authority", MALFORMED, {METHOD, SCHEME, ":authority", "a\nb", PATH}},
        {"the same host", GOOD, {METHOD, SCHEME, AUTHORITY, PATH, "host", "host.example"}},
        {"another host", MALFORMED, {METHOD, SCHEME, AUTHORITY, PATH, "host", "b.example"}},
        {"host in capitals", GOOD, {METHOD, SCHEME, AUTHORITY, PATH, "host", "HOST.Example"}},
        {"its port", GOOD, {METHOD, SCHEME, AUTHORITY, PATH, "host", "host.example:80"}},
        {"no port", GOOD, {METHOD, SCHEME, AUTHORITY, PATH, "host", "host.example:"}},
        {"another port", MALFORMED, {METHOD, SCHEME, AUTHORITY, PATH, "host", "host.example:8"}},
        {"443 is not http's",
         MALFORMED,
         {METHOD, SCHEME, AUTHORITY, PATH, "host", "host.example:443"}},
        {"443 is https's",
         GOOD,
         {METHOD, ":scheme", "https", PATH, ":authority", "host.example:443", "host",
          "host.example"}},
        {"IPv6 and its port",
         GOOD,
         {METHOD, SCHEME, PATH, ":authority", "[2001:db8::80]", "host", "[2001:DB8::80]:80"}},
        {"IPv6 without brackets",
         MALFORMED,
         {METHOD, SCHEME, PATH, ":authority", "[2001:db8::80]", "host", "2001:db8::80"}},
        {"a longer host", MALFORMED, {METHOD, SCHEME, AUTHORITY, PATH, "host", "host.example2"}},
    };
    all_requests(requests, NJ_ARRAY_LEN(requests));
}

/* 8.5: ":scheme" and ":path" MUST be omitted, ":authority" has host and port; "A CONNECT request
 * that does not conform to these restrictions is malformed". */
Test(h2_rfc9113_pseudo, connect)
{
    static const struct request requests[] = {
        {"CONNECT", GOOD, {":method", "CONNECT", ":authority", "a.example:443"}},
        {"with a path", MALFORMED, {":method", "CONNECT", ":authority", "a:1", PATH}},
        {"with a scheme", MALFORMED, {":method", "CONNECT", ":authority", "a:1", SCHEME}},
        {"with both", MALFORMED, {":method", "CONNECT", ":authority", "a:1", SCHEME, PATH}},
        {"without authority", MALFORMED, {":method", "CONNECT", "x-a", "b"}},
        {"of a user", MALFORMED, {":method", "CONNECT", ":authority", "me@a:1"}},
        {"and host", GOOD, {":method", "CONNECT", ":authority", "a:1", "host", "A:1"}},
        {"and another port", MALFORMED, {":method", "CONNECT", ":authority", "a:80", "host", "a"}},
        /* RFC 8441 3, 4: only if the server has sent ENABLE_CONNECT_PROTOCOL. */
        {"extended",
         MALFORMED,
         {":method", "CONNECT", AUTHORITY, SCHEME, PATH, ":protocol", "websocket"}},
    };
    all_requests(requests, NJ_ARRAY_LEN(requests));
}

/* The owner gets all fields. */
RFC_CASE(h2_rfc9113_pseudo, shown)
{
    rfc_hello(c);
    rfc_head(c, 1, RFC_ENDS, ":path", "/a?b", ":method", "PUT", ":authority", "x:1", ":scheme",
             "https", "host", "X:1");
    rfc_head(c, 3, RFC_ENDS, METHOD, SCHEME, PATH, "host", "only.example");
    rfc_head(c, 5, RFC_ENDS, ":method", "CONNECT", ":authority", "a.example:443");
    rfc_go(c);
    struct rfc_stream *s = rfc_stream(c, 1);
    if (s->shown) {
        RFC_CHECK(c, strcmp(s->path, "/a?b") == 0 && strcmp(s->method, "PUT") == 0, "1: %s",
                  s->path);
        RFC_CHECK(c, strcmp(s->authority, "x:1") == 0, "authority %s", s->authority);
        RFC_CHECK(c, strcmp(s->scheme, "https") == 0 && s->ends, "scheme %s", s->scheme);
    }
    RFC_CHECK(c, strcmp(rfc_stream(c, 3)->authority, "only.example") == 0,
              "host replaces :authority");
    s = rfc_stream(c, 5);
    RFC_CHECK(c, s->path[0] == '\0' && strcmp(s->method, "CONNECT") == 0, "CONNECT %s", s->path);
    rfc_expect_alive(c);
}

/* ---- 8.2.1 names and values ---- */

struct odd {
    uint8_t byte;
    unsigned at; /* 0: first, 1: within, 2: last */
    bool of_name;
};

static enum verdict verdict_of(const struct odd *t)
{
    uint8_t b = t->byte;
    bool token =
        (b >= 'a' && b <= 'z') || (b >= '0' && b <= '9') || (b && strchr("!#$%&'*+-.^_`|~", b));
    if (t->of_name)
        return b <= 0x20 || (b >= 'A' && b <= 'Z') || b >= 0x7f || b == ':' ? MALFORMED
               : token                                                      ? GOOD
                                                                            : EITHER;
    if (b == 0 || b == '\r' || b == '\n')
        return MALFORMED;
    if (b == ' ' || b == '\t')
        return t->at == 1 ? GOOD : MALFORMED;
    return b < 0x20 || b == 0x7f ? EITHER : GOOD; /* RFC 9110 5.5: obs-text is allowed */
}

static void odd_field(struct rfc *c, const void *arg)
{
    const struct odd *t = arg;
    const struct rfc_block *get = rfc_block(RFC_GET, NULL);
    struct rfc_block b = {.n = 0};
    uint8_t odd[3] = {'x', 'x', 'x'};
    odd[t->at] = t->byte;
    snprintf(c->what, sizeof c->what, "byte 0x%02x at %u of a %s: ", t->byte, t->at,
             t->of_name ? "name" : "value");
    rfc_put_bytes(&b, get->p, get->n);
    rfc_put_field_n(&b, 0, t->of_name ? odd : (const uint8_t *)"x-a", 3,
                    t->of_name ? (const uint8_t *)"val" : odd, 3);
    rfc_hello(c);
    rfc_head_block(c, 1, RFC_ENDS, &b);
    rfc_go(c);
    check_verdict(c, 1, verdict_of(t));
}

static void all_bytes(bool of_name)
{
    for (unsigned at = 0; at < 3; at++) {
        for (unsigned byte = 0; byte < 256; byte++) {
            const struct odd odd = {(uint8_t)byte, at, of_name};
            rfc_every_way(odd_field, &odd);
        }
    }
}

/* "A field name MUST NOT contain characters in the ranges 0x00-0x20, 0x41-0x5a, or 0x7f-0xff (all
 * ranges inclusive)"; "field names MUST NOT include a colon". */
Test(h2_rfc9113_fields, bytes_of_names)
{
    all_bytes(true);
}

/* "A field value MUST NOT contain the zero value ..., line feed ..., or carriage return ... at any
 * position"; "A field value MUST NOT start or end with an ASCII whitespace character". */
Test(h2_rfc9113_fields, bytes_of_values)
{
    all_bytes(false);
}

Test(h2_rfc9113_fields, names_and_values)
{
    static const struct request requests[] = {
        {"empty value", GOOD, {METHOD, SCHEME, AUTHORITY, PATH, "x-a", ""}},
        {"empty name", MALFORMED, {METHOD, SCHEME, AUTHORITY, PATH, "", "b"}},
        {"blank value", MALFORMED, {METHOD, SCHEME, AUTHORITY, PATH, "x-a", " "}},
        {"one letter", GOOD, {METHOD, SCHEME, AUTHORITY, PATH, "x", "y"}},
        {"one upper letter", MALFORMED, {METHOD, SCHEME, AUTHORITY, PATH, "X", "y"}},
        {"the same twice", GOOD, {METHOD, SCHEME, AUTHORITY, PATH, "x", "y", "x", "y"}},
        {"crumbs", GOOD, {METHOD, SCHEME, AUTHORITY, PATH, "cookie", "a=b", "cookie", "c=d"}},
    };
    all_requests(requests, NJ_ARRAY_LEN(requests));
}

/* ---- 8.2.2 fields of a connection ---- */

/* "Any message containing connection-specific header fields MUST be treated as malformed"; "The
 * only exception to this is the TE header field, which MAY be present in an HTTP/2 request; when it
 * is, it MUST NOT contain any value other than "trailers"." */
Test(h2_rfc9113_fields, of_a_connection)
{
    static const struct request requests[] = {
        {"connection", MALFORMED, {METHOD, SCHEME, AUTHORITY, PATH, "connection", "close"}},
        {"keep-alive", MALFORMED, {METHOD, SCHEME, AUTHORITY, PATH, "keep-alive", "5"}},
        {"proxy-connection",
         MALFORMED,
         {METHOD, SCHEME, AUTHORITY, PATH, "proxy-connection", "keep-alive"}},
        {"transfer-encoding",
         MALFORMED,
         {METHOD, SCHEME, AUTHORITY, PATH, "transfer-encoding", "chunked"}},
        {"upgrade", MALFORMED, {METHOD, SCHEME, AUTHORITY, PATH, "upgrade", "h2c"}},
        {"empty connection", MALFORMED, {METHOD, SCHEME, AUTHORITY, PATH, "connection", ""}},
        {"te: trailers", GOOD, {METHOD, SCHEME, AUTHORITY, PATH, "te", "trailers"}},
        {"te: Trailers", EITHER, {METHOD, SCHEME, AUTHORITY, PATH, "te", "Trailers"}},
        {"te: gzip", MALFORMED, {METHOD, SCHEME, AUTHORITY, PATH, "te", "gzip"}},
        {"te: both", MALFORMED, {METHOD, SCHEME, AUTHORITY, PATH, "te", "trailers, deflate"}},
        {"te: twice", MALFORMED, {METHOD, SCHEME, AUTHORITY, PATH, "te", "trailers", "te", "gzip"}},
        {"te: longer", MALFORMED, {METHOD, SCHEME, AUTHORITY, PATH, "te", "trailersx"}},
        {"te: empty", EITHER, {METHOD, SCHEME, AUTHORITY, PATH, "te", ""}},
        {"http2-settings", EITHER, {METHOD, SCHEME, AUTHORITY, PATH, "http2-settings", "AAMAAABk"}},
    };
    all_requests(requests, NJ_ARRAY_LEN(requests));
}

/* The same names where HPACK's static table has them (RFC 7541 A: 57 is transfer-encoding), and in
 * the dynamic one, where a second request finds them. */
RFC_CASE(h2_rfc9113_fields, of_a_connection_indexed)
{
    static const uint8_t first[] = "\x82\x86\x84\x41\1h\x40\12connection\5close";
    static const uint8_t second[] = "\x82\x86\x84\xbf\xbe";
    static const uint8_t third[] = "\x82\x86\x84\xbf\x0f\x2a\7chunked";
    static const uint8_t fourth[] = "\x82\x86\x84\xbf";
    rfc_hello(c);
    rfc_say(c, RFC_HEADERS, RFC_ENDS, 1, first, sizeof first - 1);
    rfc_say(c, RFC_HEADERS, RFC_ENDS, 3, second, sizeof second - 1);
    rfc_say(c, RFC_HEADERS, RFC_ENDS, 5, third, sizeof third - 1);
    rfc_say(c, RFC_HEADERS, RFC_ENDS, 7, fourth, sizeof fourth - 1);
    rfc_go(c);
    if (!c->over)
        rfc_expect_answer(c, 7);
    rfc_expect_malformed(c, 1);
    if (c->over)
        return;
    rfc_expect_malformed(c, 3);
    rfc_expect_malformed(c, 5);
}

/* ---- 8.1.1: a malformed request costs its stream, and its owner never sees it ---- */

RFC_CASE(h2_rfc9113_fields, malformed_beside_others)
{
    c->hold = true;
    rfc_hello(c);
    rfc_get(c, 1);
    rfc_head(c, 3, RFC_END_HEADERS, RFC_POST, "Bad", "1");
    rfc_say_zeros(c, RFC_DATA, 0, 3, 100);
    rfc_head(c, 5, RFC_ENDS, METHOD, SCHEME);
    rfc_post(c, 7);
    rfc_say_zeros(c, RFC_DATA, RFC_END_STREAM, 3, 100);
    rfc_say_zeros(c, RFC_DATA, RFC_END_STREAM, 7, 100);
    rfc_go(c);
    RFC_CHECK(c, c->n_shown == 2, "%u shown", c->n_shown);
    rfc_answer(c, 1, 128);
    rfc_answer(c, 7, 128);
    rfc_go(c);
    rfc_expect_answer(c, 1);
    rfc_expect_answer(c, 7);
    RFC_CHECK(c, rfc_stream(c, 7)->n_body == 100, "the body");
    rfc_expect_malformed(c, 3);
    rfc_expect_malformed(c, 5);
}

/* Entries that a malformed block added to HPACK's table stay there. */
RFC_CASE(h2_rfc9113_fields, malformed_keeps_the_table)
{
    static const uint8_t block[] = "\x40\1X\1y\x82\x86\x41\1h\x44\5/sync";
    rfc_hello(c);
    rfc_say(c, RFC_HEADERS, RFC_ENDS, 1, block, sizeof block - 1);
    c->sync = RFC_SYNC_PATH;
    rfc_go(c);
    rfc_expect_malformed(c, 1);
}

/* ... and is as malformed when it is taken from there: a value, a name, and a good value of a bad
 * name. */
RFC_CASE(h2_rfc9113_fields, malformed_from_the_table)
{
    rfc_hello(c);
    rfc_say(c, RFC_HEADERS, RFC_ENDS, 1, "\x82\x86\x84\x41\1h\x40\3x-a\3a\nb\x40\1X\1y", 20);
    rfc_say(c, RFC_HEADERS, RFC_ENDS, 3, "\x82\x86\x84\xc0\xbf", 5);
    rfc_say(c, RFC_HEADERS, RFC_ENDS, 5, "\x82\x86\x84\xc0\xbe", 5);
    rfc_say(c, RFC_HEADERS, RFC_ENDS, 7, "\x82\x86\x84\xc0\x0f\x2f\1z", 8);
    rfc_say(c, RFC_HEADERS, RFC_ENDS, 9, "\x82\x86\x84\xc0\x0f\x30\1z", 8);
    rfc_go(c);
    if (!c->over)
        rfc_expect_answer(c, 9); /* the name of the bad value is a good one */
    for (uint32_t id = 1; id <= 7 && !c->over; id += 2)
        rfc_expect_malformed(c, id);
    RFC_CHECK(c, !c->over || c->goaway_code == 1, "GOAWAY with %u", c->goaway_code);
}
