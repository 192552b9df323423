/* SPDX-License-Identifier: BSD-3-Clause */
/* Clients whose handshakes or connections of TLS end are recorded. */
#define RIG_GOT_MAX (512u * 1024u)
#include <criterion/criterion.h>

#include "conn/abuse_reason_counts.h"
#include "support/shard_rig.h"
#include "support/tls_peer.h"
#include "telem/counters.h"

static struct tls_rig *t;
static struct tls_peer *c; /* the client; NULL: none */

static void begin(void)
{
    t = tls_rig_new(8192, 8192);
}

static void end(void)
{
    if (c)
        tls_peer_free(c);
    tls_rig_free(t);
}

TestSuite(conn_conn_tls_refused, .init = begin, .fini = end);

/* Times that the client was recorded as the cause. */
static uint64_t n_recorded(nj_counter reason)
{
    struct nj_abuse_view v = {0};
    const struct nj_addr client = rig_addr(RIG_PEER_IP);

    nj_abuse_get_count_and_client(&t->r->s->conns.abuse, reason, &v);
    return v.n > 0 && nj_addr_eq(&v.client, &client) ? v.n : 0;
}

static void expect_recorded(nj_counter reason)
{
    cr_expect_eq(rig_count(t->r, reason), 1, "%s", nj_counter_info[reason].name);
    cr_expect_eq(n_recorded(reason), 1, "%s", nj_counter_info[reason].name);
    cr_expect(nj_abuse_is_refusal(reason));
}

Test(conn_conn_tls_refused, in_the_handshake)
{
    static const uint8_t no_h2[] = "\x08http/1.1";

    SSL_CTX_set_max_proto_version(t->client, TLS1_2_VERSION);
    for (uint16_t i = 0; i < 3; i++) {
        struct tls_peer *one = tls_peer_new(t, (uint16_t)(1000 + i));
        if (i == 2)
            rig_send(t->r, one->p, "GET / HTTP/1.1\r\n", 16);
        else
            tls_peer_pump(t, one, 1400);
        rig_settle(t->r);
        cr_expect(one->p->got_fin, "%u", i);
        tls_peer_free(one);
        SSL_CTX_set_max_proto_version(t->client, TLS1_3_VERSION);
        cr_assert_eq(SSL_CTX_set_alpn_protos(t->client, no_h2, sizeof no_h2 - 1), 0);
    }
    expect_recorded(NJ_C_tls_failed_version);
    expect_recorded(NJ_C_tls_failed_alpn);
    expect_recorded(NJ_C_tls_failed_message);
}

Test(conn_conn_tls_refused, who_leaves_the_handshake)
{
    c = tls_peer_new(t, 1000);
    rig_send(t->r, c->p, "\x16\x03\x01\x00\x20", 5);
    rig_fin(t->r, c->p);
    rig_settle(t->r);
    expect_recorded(NJ_C_tls_failed_closed);
}

/* An alert of the client after the handshake ends the connection. */
Test(conn_conn_tls_refused, who_sends_an_alert)
{
    uint8_t record[256];
    int n;

    c = tls_peer_connect_h2(t, 1000);
    tls_peer_get(c, 1, "/index.html");
    tls_peer_pump(t, c, 1400);
    /* The client gets a forged record in the name of the server, and sends bad_record_mac. */
    memset(record, 0, sizeof record);
    memcpy(record, "\x17\x03\x03\x00\x20", 5);
    BIO_write(c->in, record, 37);
    SSL_read(c->ssl, record, sizeof record);
    while ((n = BIO_read(c->out, record, sizeof record)) > 0)
        rig_send(t->r, c->p, record, (uint32_t)n);
    rig_settle(t->r);
    cr_expect(c->p->got_fin);
    expect_recorded(NJ_C_tls_peer_alert);
}
