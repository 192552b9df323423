/* SPDX-License-Identifier: BSD-3-Clause */
/* Connections in cleartext that begin with a PROXY header: who their client is, for the policy, the
 * shares and the access log; and headers that are refused. */
#include <inttypes.h>
#include <nightjar/handler.h>

#include "base/prng.h"
#include "proxy_rig.h"
#include "support/handlers_rig.h"
#include "telem/counters.h"

static struct nj_policy policy;
static struct hr *h;
static struct rig *r;

static void says_scheme(struct nj_request *req, struct nj_response *resp, void *arg)
{
    struct nj_view scheme = nj_request_scheme(req);
    nj_response_write(resp, scheme.p, scheme.n_bytes);
}

static const struct nj_route routes[] = {{.path = "/scheme", .handle = says_scheme}};

static void begin(void)
{
    policy = proxy_policy();
    h = hr_new(routes, NJ_ARRAY_LEN(routes));
    r = h->r;
    h->config.conns.policy = &policy;
    h->config.listeners.at[0].has_proxy = true;
    h->config.conns.access = book_begin(BOOK_LINES);
    hr_start(h);
}

static void end(void)
{
    hr_free(h);
    book_expect_written();
}

TestSuite(conn_proxy, .init = begin, .fini = end);

static void change_policy(void)
{
    static struct nj_policy changed[4];
    static uint32_t n;
    struct nj_policy *p = &changed[n++ % 4];

    *p = policy;
    p->version = ++policy.version;
    nj_conns_set_policy(&r->s->conns, p);
    rig_settle(r);
}

/* A connection of the proxy that has sent these bytes. */
static struct rig_peer *proxied(uint16_t port, const char *bytes)
{
    struct rig_peer *p = rig_connect(r, port);

    http1_send(r, p, bytes);
    rig_settle(r);
    return p;
}

static bool is_open(const struct rig_peer *p)
{
    return p->got_synack && !p->got_rst && !p->got_fin;
}

static void expect_refused(const struct rig_peer *p, nj_counter why, uint64_t n)
{
    cr_expect(p->got_rst && p->n_got == 0);
    cr_expect_eq(rig_count(r, why), n, "%lu", rig_count(r, why));
    cr_expect_eq(n_recorded(r, why, PROXY), n);
    cr_expect_eq(book.n_lines, 0);
}

Test(conn_proxy, in_front_of_a_request)
{
    struct rig_peer *p = proxied(1000, HEADER(CLIENT) GET GET);

    cr_expect_eq(http1_count(p, NULL), 2);
    cr_assert_eq(book.n_lines, 2);
    line_names(0, CLIENT, CLIENT, 4711);
    line_names(1, CLIENT, CLIENT, 4711);
    cr_expect_eq(rig_count(r, NJ_C_conn_proxied), 1);
    cr_expect_eq(rig_count(r, NJ_C_conn_h1), 1);
    p = proxied(1001, "PROXY TCP6 2001:db8::7 2001:db8::1 8 80\r\n" GET);
    cr_expect_eq(http1_first(p).status, 200);
    line_names(2, "2001:db8::7", "2001:db8::7", 8);
    cr_expect_eq(n_recorded(r, NJ_C_conn_unknown, PROXY), 0);
}

/* Version 2, with bytes of one's own behind the addresses: as many as there may be. */
static uint32_t binary_header(uint8_t *out, uint32_t n_fields)
{
    static const uint8_t begin[] = "\r\n\r\n\0\r\nQUIT\n\x21\x11";
    static const uint8_t addresses[] = {203, 0, 113, 7, 192, 0, 2, 1, 0x12, 0x67, 0, 80};
    uint32_t n = 12 + n_fields;

    memcpy(out, begin, 14);
    out[14] = (uint8_t)(n >> 8);
    out[15] = (uint8_t)n;
    memcpy(out + 16, addresses, 12);
    memset(out + 28, 0, n_fields);
    if (n_fields > 0) {
        out[28] = 4;
        out[29] = (uint8_t)((n_fields - 3) >> 8);
        out[30] = (uint8_t)(n_fields - 3);
    }
    return 28 + n_fields;
}

Test(conn_proxy, in_front_of_http2)
{
    uint8_t bytes[512];
    struct rig_peer *p = rig_connect(r, 1000);
    uint32_t n = binary_header(bytes, 20);

    n += rig_h2_hello(bytes + n);
    n += rig_h2_get(bytes + n, 1, "/index.html");
    rig_send(r, p, bytes, n);
    rig_settle(r);
    cr_expect_eq(rig_count(r, NJ_C_conn_h2), 1);
    cr_assert_eq(book.n_lines, 1);
    line_names(0, CLIENT, CLIENT, 4711);
    cr_expect(is_open(p));
}

/* However the bytes are divided into segments. */
Test(conn_proxy, any_segments)
{
    const uint64_t seed = 0x5e6;
    struct nj_prng rng;
    uint8_t bytes[8192];

    nj_prng_init(&rng, seed);
    for (uint32_t round = 0; round < 60; round++) {
        struct rig_peer *p = rig_connect(r, (uint16_t)(1000 + round));
        uint32_t n = round % 2 ? binary_header(bytes, nj_prng_below(&rng, 2) ? 4068 : 3)
                               : (uint32_t)sprintf((char *)bytes, "%s", HEADER(CLIENT));
        uint32_t most = round < 2 ? 1 : 1 + nj_prng_below(&rng, 100);
        memcpy(bytes + n, GET, strlen(GET));
        n += (uint32_t)strlen(GET);
        for (uint32_t at = 0, n_now; at < n; at += n_now) {
            n_now = 1 + nj_prng_below(&rng, most);
            n_now = n_now < n - at ? n_now : n - at;
            cr_assert(rig_send(r, p, bytes + at, n_now));
            if (nj_prng_below(&rng, 2) || r->n_in > 100)
                rig_settle(r);
        }
        rig_settle(r);
        cr_assert_eq(http1_first(p).status, 200, "seed %" PRIx64 ", round %u", seed, round);
        line_names(book.n_lines - 1, CLIENT, CLIENT, 4711);
        rig_fin(r, p);
        rig_settle(r);
    }
    cr_expect_eq(book.n_lines, 60);
}

/* The connection stays the proxy's: a health check, or a client without an address. */
Test(conn_proxy, no_source)
{
    cr_expect_eq(http1_first(proxied(1000, "PROXY UNKNOWN\r\n" GET)).status, 200);
    struct rig_peer *p = rig_connect(r, 1001);
    rig_send(r, p, "\r\n\r\n\0\r\nQUIT\n\x20\0\0\0" GET, 16 + (uint32_t)strlen(GET));
    rig_settle(r);
    cr_expect_eq(http1_first(p).status, 200);
    line_names(0, PROXY, PROXY, 1000);
    line_names(1, PROXY, PROXY, 1001);
    cr_expect_eq(rig_count(r, NJ_C_conn_proxied), 0);
}

/* --- who may send one ----------------------------------------------------------------------- */

Test(conn_proxy, untrusted_peer)
{
    struct rig_peer *p = rig_syn_from(r, 0xc6120005u, 1000);

    rig_settle(r);
    http1_send(r, p, HEADER(CLIENT) GET);
    rig_settle(r);
    cr_expect(p->got_rst && p->n_got == 0);
    cr_expect_eq(rig_count(r, NJ_C_conn_proxy_untrusted), 1);
    cr_expect_eq(n_recorded(r, NJ_C_conn_proxy_untrusted, "198.18.0.5"), 1);
    cr_expect_eq(book.n_lines, 0);
}

/* A proxy that is trusted no more: its open connections stay, new ones are refused. */
Test(conn_proxy, trusted_no_more)
{
    struct rig_peer *old = proxied(1000, HEADER(CLIENT) GET);

    policy.trusted = 0;
    change_policy();
    http1_send(r, old, GET);
    cr_expect(rig_connect(r, 1001)->got_rst);
    cr_expect_eq(rig_count(r, NJ_C_conn_proxy_untrusted), 1);
    cr_expect(is_open(old));
    cr_expect_eq(http1_count(old, NULL), 2);
}

/* The source of a header counts if the proxy is trusted when it is complete. */
Test(conn_proxy, trusted_no_more_in_the_middle)
{
    struct rig_peer *p = proxied(1000, "PROXY TCP4 ");

    policy.trusted = 0;
    change_policy();
    http1_send(r, p, &HEADER(CLIENT)[sizeof "PROXY TCP4 " - 1]);
    rig_settle(r);
    expect_refused(p, NJ_C_conn_proxy_untrusted, 1);
}

/* An absolute URL with https is for a gateway, which the client behind a proxy is not. */
Test(conn_proxy, https_in_cleartext)
{
    const char *get = "GET https://nightjar.test/ HTTP/1.1\r\nHost: nightjar.test\r\n\r\n";
    struct rig_peer *p = proxied(1000, HEADER(CLIENT));

    http1_send(r, p, get);
    rig_settle(r);
    cr_expect_eq(http1_first(p).status, 421);
    p = proxied(1001, HEADER("10.0.0.1"));
    http1_send(r, p, get);
    rig_settle(r);
    cr_expect_neq(http1_first(p).status, 421);
}

Test(conn_proxy, missing)
{
    expect_refused(proxied(1000, GET), NJ_C_conn_proxy_missing, 1);
    expect_refused(proxied(1001, RIG_PREFACE), NJ_C_conn_proxy_missing, 2);
    expect_refused(proxied(1002, "\x16\x03\x01"), NJ_C_conn_proxy_missing, 3);
}

Test(conn_proxy, malformed)
{
    expect_refused(proxied(1000, "PROXY TCP4 1.2.3.4 1.2.3.4 1 02\r\n" GET),
                   NJ_C_conn_proxy_malformed, 1);
    struct rig_peer *p = rig_connect(r, 1001);
    rig_send(r, p, "\r\n\r\n\0\r\nQUIT\n\x21\x11\xff\xff", 16);
    rig_settle(r);
    expect_refused(p, NJ_C_conn_proxy_malformed, 2);
    p = proxied(1002, "PROXY TCP4 1.2.3.4 1.2.3.4 1");
    rig_fin(r, p);
    rig_settle(r);
    expect_refused(p, NJ_C_conn_proxy_malformed, 3);
}

/* Health checks that only connect. */
Test(conn_proxy, closed_without_a_byte)
{
    struct rig_peer *p = rig_connect(r, 1000);

    rig_fin(r, p);
    rig_settle(r);
    cr_expect(p->got_fin && !p->got_rst);
    p = rig_connect(r, 1001);
    rig_seg(r, p, p->snd_nxt, NJ_TCP_RST | NJ_TCP_ACK, NULL, 0);
    rig_settle(r);
    rig_run(r, 20 * NJ_SEC);
    for (nj_counter c = NJ_C_conn_proxy_untrusted; c <= NJ_C_conn_proxy_timeout; c++)
        cr_expect_eq(rig_count(r, c), 0);
    cr_expect_eq(rig_count(r, NJ_C_conn_timeout), 0);
    cr_expect_eq(r->s->conns.pool.n_used, 0);
}

/* Header and first bytes have one time together. */
Test(conn_proxy, too_slow)
{
    struct rig_peer *silent = rig_connect(r, 1000), *partial = proxied(1001, "PROXY TCP4 ");
    struct rig_peer *behind = proxied(1002, "PROXY TCP4 ");

    rig_run(r, 6 * NJ_SEC);
    http1_send(r, partial, "1.2.3.4 ");
    http1_send(r, behind, "203.0.113.7 1.2.3.4 1 2\r\n");
    rig_run(r, 3 * NJ_SEC);
    cr_expect(is_open(silent) && is_open(partial) && is_open(behind));
    rig_run(r, 2 * NJ_SEC);
    cr_expect(silent->got_rst && partial->got_rst && behind->got_rst);
    cr_expect_eq(rig_count(r, NJ_C_conn_proxy_timeout), 2);
    cr_expect_eq(n_recorded(r, NJ_C_conn_proxy_timeout, PROXY), 2);
    cr_expect_eq(rig_count(r, NJ_C_conn_timeout), 1);
}

/* A drain ends connections whose header is incomplete, and what they still send is discarded. */
Test(conn_proxy, drain)
{
    struct rig_peer *p = proxied(1000, "PROXY TCP4 ");

    nj_conns_drain(&r->s->conns, r->now);
    rig_settle(r);
    cr_expect(p->got_fin && !p->got_rst);
    http1_send(r, p, "1.2.3.4 1.2.3.4 1 2\r\n" GET);
    rig_fin(r, p);
    rig_settle(r);
    cr_expect(!p->got_rst);
    cr_expect_eq(r->s->conns.pool.n_used, 0);
    cr_expect_eq(book.n_lines, 0);
}

/* --- the policy ----------------------------------------------------------------------------- */

Test(conn_proxy, denied_client)
{
    struct rig_peer *early = proxied(1000, HEADER(DENIED) GET);

    cr_expect_eq(http1_first(early).status, 200);
    policy.deny = DENIED_LIST;
    policy.deny_action = NJ_ACTION_DROP;
    change_policy();
    cr_expect(early->got_rst, "a new policy applies to the source, too");
    struct rig_peer *late = proxied(1001, HEADER(DENIED) GET);
    cr_expect(late->got_rst && late->n_got == 0);
    cr_expect_eq(n_recorded(r, NJ_C_conn_denied, DENIED), 2);
    cr_expect_eq(http1_first(proxied(1002, HEADER(CLIENT) GET)).status, 200);
}

Test(conn_proxy, connections_of_a_client)
{
    policy.classes[0].caps.conns_max = 2;
    change_policy();
    struct rig_peer *first = proxied(1000, HEADER(CLIENT) GET);
    struct rig_peer *second = proxied(1001, HEADER(CLIENT) GET);
    struct rig_peer *third = proxied(1002, HEADER(CLIENT) GET);

    cr_expect(is_open(first) && is_open(second) && third->got_rst);
    cr_expect_eq(n_recorded(r, NJ_C_conn_client_full, CLIENT), 1);
    cr_expect(is_open(proxied(1003, HEADER(OTHER) GET)));
    cr_expect(is_open(proxied(1004, "PROXY UNKNOWN\r\n" GET)), "a proxy's count for no client");
    rig_seg(r, first, first->snd_nxt, NJ_TCP_RST | NJ_TCP_ACK, NULL, 0);
    rig_settle(r);
    cr_expect(is_open(proxied(1005, HEADER(CLIENT) GET)));
}

/* While places are short, a client behind the proxy loses connections to the others behind it. */
Test(conn_proxy, shares)
{
    struct rig_peer *many[RIG_PEERS];
    uint32_t n_closed = 0, n = RIG_PEERS - 20;

    for (uint32_t i = 0; i < n; i++)
        many[i] = proxied((uint16_t)(1000 + i), HEADER(CLIENT));
    cr_expect_eq(rig_count(r, NJ_C_conn_evicted), 0);
    for (uint32_t i = 0; i < 10; i++)
        cr_expect_eq(http1_first(proxied((uint16_t)(2000 + i), HEADER(OTHER) GET)).status, 200);
    for (uint32_t i = 0; i < n; i++)
        n_closed += !is_open(many[i]);
    cr_expect_gt(n_closed, 0);
    cr_expect_eq(rig_count(r, NJ_C_conn_evicted), n_closed);
    cr_expect_eq(n_recorded(r, NJ_C_conn_evicted, CLIENT), n_closed);
}

/* A connection asks for one place, once its client is known. */
Test(conn_proxy, asks_for_one_place)
{
    uint32_t n = RIG_PEERS * 7 / 8;

    for (uint32_t i = 0; i < n; i++)
        proxied((uint16_t)(1000 + i), HEADER(CLIENT));
    struct rig_peer *p = rig_connect(r, 2000);
    rig_settle(r);
    cr_expect_eq(rig_count(r, NJ_C_conn_evicted), 0, "nobody knows for whom");
    http1_send(r, p, HEADER(OTHER) GET);
    rig_settle(r);
    cr_expect_eq(http1_first(p).status, 200);
    cr_expect_eq(rig_count(r, NJ_C_conn_evicted), 1, "%lu", rig_count(r, NJ_C_conn_evicted));
    p = proxied(2001, HEADER(CLIENT) GET);
    cr_expect_eq(http1_first(p).status, 200);
    cr_expect_eq(rig_count(r, NJ_C_conn_evicted), 1, "it holds most itself");
}

/* --- fields of proxies ---------------------------------------------------------------------- */

static void ask(uint16_t port, const char *header, const char *fields)
{
    struct rig_peer *p = proxied(port, header);

    http1_ask(r, p, "GET", "/index.html", fields);
    rig_settle(r);
    cr_expect_eq(http1_first(p).status, 200);
}

/* X-Forwarded-For counts if the source of the header is a trusted proxy, and only then. */
Test(conn_proxy, before_x_forwarded_for)
{
    policy.client_by = NJ_CLIENT_BY_HEADER;
    policy.client_field = NJ_STR("x-forwarded-for");
    change_policy();
    ask(1000, HEADER(CLIENT), "X-Forwarded-For: " OTHER "\r\n");
    line_names(0, CLIENT, CLIENT, 4711);
    ask(1001, HEADER("10.0.0.1"), "X-Forwarded-For: 1.2.3.4, " OTHER ", 10.0.0.2\r\n");
    line_names(1, OTHER, "10.0.0.1", 4711);
    ask(1002, "PROXY UNKNOWN\r\n", "X-Forwarded-For: " OTHER "\r\n");
    line_names(2, OTHER, PROXY, 1002);
}

static const char *scheme_seen(const char *header, const char *fields, char *out)
{
    static uint16_t port = 3000;
    struct rig_peer *p = proxied(port++, header);

    http1_ask(r, p, "GET", "/scheme", fields);
    hr_settle(h);
    strcpy(out, http1_first(p).body);
    const struct nj_access_record *a = &book.line[book.n_lines - 1];
    cr_expect_str_eq(nj_scheme_text((enum nj_scheme)a->scheme).p, out);
    return out;
}

Test(conn_proxy, scheme)
{
    char got[HTTP1_BODY_KEEP];
    const char *proto = "X-Forwarded-Proto: https\r\n";

    cr_expect_str_eq(scheme_seen("PROXY UNKNOWN\r\n", "", got), "http");
    cr_expect_str_eq(scheme_seen("PROXY UNKNOWN\r\n", proto, got), "https");
    cr_expect_str_eq(scheme_seen(HEADER("10.0.0.1"), proto, got), "https");
    cr_expect_str_eq(scheme_seen(HEADER(CLIENT), proto, got), "http", "not from a client");
    policy.client_by = NJ_CLIENT_BY_HEADER;
    policy.client_field = NJ_STR("forwarded");
    change_policy();
    cr_expect_str_eq(scheme_seen("PROXY UNKNOWN\r\n", proto, got), "http");
    cr_expect_str_eq(
        scheme_seen("PROXY UNKNOWN\r\n", "Forwarded: for=" CLIENT ";proto=https\r\n", got),
        "https");
    cr_expect_str_eq(scheme_seen(HEADER(CLIENT), "Forwarded: for=1.2.3.4;proto=https\r\n", got),
                     "http");
}
