/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests by a TLS connection whose server name belongs to another site (RFC 9110 15.5.20), and
 * those that need a certificate of the client. The client gives no server name, so the connection
 * has the certificates of [tls]. */
#include <criterion/criterion.h>

#include "conn/conn_tls_internal.h"
#include "conn_http1_rig.h"
#include "support/tls_peer.h"
#include "telem/counters.h"

static struct tls_rig *t;
static struct tls_peer *c;
static struct nj_policy policy;
static struct nj_sites *sites;

static void begin(void)
{
    static const uint8_t h1[] = "\x08http/1.1";
    struct nj_str own = NJ_STR("own.test"), shared = NJ_STR("shared.test"),
                  secret = NJ_STR("secret.test");
    const struct nj_site_rules needs_cert = {
        .keys = NJ_SITE_CLIENT_CERT, .needs_client_cert = true, .identity = {3, 0}};
    const struct nj_site_def defs[] = {{.names = &own, .n_names = 1, .rules.identity = {1, 7}},
                                       {.names = &shared, .n_names = 1, .rules.identity = {2, 0}},
                                       {.names = &secret, .n_names = 1, .rules = needs_cert}};
    const char *why;

    policy = nj_policy_none;
    policy.sites = sites = nj_sites_new(defs, 3, NULL, 0, 1, &why);
    cr_assert(sites, "%s", why);
    t = tls_rig_alloc(8192, 8192);
    tls_rig_permit_http1(t);
    t->policy = &policy;
    tls_rig_start(t);
    SSL_CTX_set_alpn_protos(t->client, h1, sizeof h1 - 1);
    c = tls_peer_new(t, 1000);
    tls_peer_pump(t, c, 1400);
    cr_assert(SSL_is_init_finished(c->ssl));
}

static void end(void)
{
    tls_peer_free(c);
    tls_rig_free(t);
    nj_sites_free(sites);
}

TestSuite(conn_site_tls, .init = begin, .fini = end);

static void ask(const char *host)
{
    char text[128];
    int n = snprintf(text, sizeof text, "GET /index.html HTTP/1.1\r\nHost: %s\r\n\r\n", host);

    tls_peer_write(c, text, (uint32_t)n);
    tls_peer_pump(t, c, 1400);
}

/* The connection serves on after 421 and 403. */
Test(conn_site_tls, each_request_is_compared)
{
    static const struct {
        const char *host;
        int status;
    } cases[] = {{"shared.test", 200},  {"own.test", 421},    {"other.test", 200},
                 {"OWN.test:443", 421}, {"secret.test", 403}, {"shared.test", 200}};

    for (size_t i = 0; i < NJ_ARRAY_LEN(cases); i++)
        ask(cases[i].host);
    struct http1_reader r = {c->got, c->n_got, 0, c->closed};
    for (size_t i = 0; i < NJ_ARRAY_LEN(cases); i++) {
        struct http1_reply a;
        cr_assert(http1_next(&r, false, &a) && a.is_whole, "%s", cases[i].host);
        cr_expect_eq(a.status, cases[i].status, "%s", cases[i].host);
    }
    cr_expect_eq(rig_count(t->r, NJ_C_request_misdirected), 2);
    cr_expect_eq(rig_count(t->r, NJ_C_request_refused), 1);
    cr_expect_eq(nj_sites_n_held(sites), 0);
}

/* A reload keeps connections: one whose server name has the site serves it with other files, too.
 */
Test(conn_site_tls, the_site_of_the_server_name_stays)
{
    struct nj_conn_tls **ct = t->r->s->conns.tls->conn;

    for (uint32_t i = 0; i < t->r->s->conns.tcp->cfg.conns_max; i++)
        if (ct[i])
            ct[i]->identity = (struct nj_site_identity){1, 6};
    ask("own.test");
    ask("shared.test");
    struct http1_reader r = {c->got, c->n_got, 0, c->closed};
    struct http1_reply a;
    cr_assert(http1_next(&r, false, &a) && a.status == 200);
    cr_assert(http1_next(&r, false, &a) && a.status == 421);
}
