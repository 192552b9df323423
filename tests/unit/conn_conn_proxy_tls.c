/* SPDX-License-Identifier: BSD-3-Clause */
/* TLS behind a PROXY header, with OpenSSL as the client. */
#include <criterion/criterion.h>

#include "proxy_rig.h"
#include "support/tls_peer.h"
#include "telem/counters.h"

static struct nj_policy policy;
static struct tls_rig *t;

static void begin(void)
{
    policy = proxy_policy();
    t = tls_rig_alloc(8192, 8192);
    tls_rig_permit_http1(t);
    t->proxied = true;
    t->policy = &policy;
    t->access = book_begin(BOOK_LINES);
    tls_rig_start(t);
}

static void end(void)
{
    tls_rig_free(t);
    book_expect_written();
}

TestSuite(conn_proxy_tls, .init = begin, .fini = end);

/* A client whose PROXY header has been sent together with the first `n_behind` bytes of TLS, in
 * segments of `n_segment` bytes. */
static struct tls_peer *connect_behind(uint16_t port, const char *header, uint32_t n_behind,
                                       uint32_t n_segment)
{
    struct tls_peer *c = tls_peer_new(t, port);
    uint8_t bytes[2048];
    uint32_t n = (uint32_t)strlen(header);

    memcpy(bytes, header, n);
    int n_read = n_behind > 0 ? BIO_read(c->out, bytes + n, (int)n_behind) : 0;
    n += n_read > 0 ? (uint32_t)n_read : 0;
    for (uint32_t at = 0; at < n; at += n_segment) {
        rig_send(t->r, c->p, bytes + at, n - at < n_segment ? n - at : n_segment);
        rig_settle(t->r);
    }
    tls_peer_pump(t, c, 1400);
    return c;
}

Test(conn_proxy_tls, http1)
{
    static const struct {
        uint32_t n_behind, n_segment;
    } cuts[] = {{0, 1400}, {1, 1400}, {4, 1400}, {1400, 1400}, {1400, 1}, {1400, 7}, {0, 1}};

    SSL_CTX_set_alpn_protos(t->client, (const uint8_t *)"\x08http/1.1", 9);
    for (uint32_t i = 0; i < NJ_ARRAY_LEN(cuts); i++) {
        struct tls_peer *c = connect_behind((uint16_t)(1000 + i), HEADER(CLIENT), cuts[i].n_behind,
                                            cuts[i].n_segment);
        cr_assert(SSL_is_init_finished(c->ssl), "cut %u", i);
        tls_peer_write(c, GET, (uint32_t)strlen(GET));
        tls_peer_pump(t, c, 1400);
        cr_expect(c->n_got > 12 && memcmp(c->got, "HTTP/1.1 200", 12) == 0, "cut %u", i);
        line_names(i, CLIENT, CLIENT, 4711);
        cr_expect(book.line[i].tls_suite && book.line[i].scheme == NJ_SCHEME_HTTPS);
        tls_peer_free(c);
    }
}

Test(conn_proxy_tls, http2)
{
    uint8_t hello[128];
    struct tls_peer *c = connect_behind(1000, HEADER(CLIENT), 100, 1400);

    cr_assert(SSL_is_init_finished(c->ssl));
    tls_peer_write(c, hello, rig_h2_hello(hello));
    tls_peer_get(c, 1, "/index.html");
    tls_peer_pump(t, c, 1400);
    cr_assert_eq(book.n_lines, 1);
    line_names(0, CLIENT, CLIENT, 4711);
    cr_expect_eq(rig_count(t->r, NJ_C_conn_h2), 1);
    tls_peer_free(c);
}

/* A failed handshake is the client's, not the proxy's. */
Test(conn_proxy_tls, failed_handshake)
{
    struct rig_peer *p = rig_connect(t->r, 1000);

    http1_send(t->r, p, HEADER(CLIENT) GET);
    rig_settle(t->r);
    rig_run(t->r, NJ_SEC);
    uint64_t n = 0;
    for (nj_counter c = 0; c < NJ_COUNTERS_MAX; c++)
        n += n_recorded(t->r, c, CLIENT);
    cr_expect_eq(n, 1);
    cr_expect_eq(rig_count(t->r, NJ_C_conn_proxy_missing), 0);
}

/* TLS without a header, and headers that do not end: no handshake begins. */
Test(conn_proxy_tls, refused)
{
    struct tls_peer *bare = connect_behind(1000, "", 1400, 1400);

    cr_expect(bare->p->got_rst && bare->p->n_got == 0);
    cr_expect_eq(rig_count(t->r, NJ_C_conn_proxy_missing), 1);
    cr_expect_eq(n_recorded(t->r, NJ_C_conn_proxy_missing, PROXY), 1);
    struct rig_peer *p = rig_connect(t->r, 1001);
    http1_send(t->r, p, "PROXY TCP4 1.2");
    rig_run(t->r, 11 * NJ_SEC);
    cr_expect(p->got_rst && p->n_got == 0);
    cr_expect_eq(rig_count(t->r, NJ_C_conn_proxy_timeout), 1);
    p = rig_connect(t->r, 1002);
    http1_send(t->r, p, "PROXY TCP4 1.2");
    nj_conns_drain(&t->r->s->conns, t->r->now);
    rig_settle(t->r);
    cr_expect(p->got_fin);
    for (nj_counter c = NJ_C_tls_handshakes_full; c <= NJ_C_tls_failed_memory; c++)
        cr_expect_eq(rig_count(t->r, c), 0, "no handshake was the client's");
    tls_peer_free(bare);
}
