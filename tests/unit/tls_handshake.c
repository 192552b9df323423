/* SPDX-License-Identifier: BSD-3-Clause */
/* Handshakes with OpenSSL as the client, on bytes in memory: what both sides agree on, resumption,
 * choice of certificates, refusals with their alerts, and bytes that arrive in any pieces. */
#include "support/tls_meeting.h"

TestSuite(tls_handshake, .init = begin, .fini = end);

/* ---- agreement ---- */

static void agree(const char *suites, uint16_t cipher, uint8_t n_secret)
{
    struct nj_tls_server_context *context = ecdsa_context();
    struct client c;
    struct meeting m;
    const unsigned char *alpn;
    unsigned n_alpn;

    client_open(&c);
    SSL_CTX_set_ciphersuites(c.ctx, suites);
    client_start(&c);
    SSL_set_tlsext_host_name(c.ssl, "a.test");
    meet(&m, context, &c, NULL);
    cr_assert_eq(m.result, NJ_TLS_HANDSHAKE_DONE);
    const struct nj_tls_handshake_info *info = nj_tls_handshake_info(m.h);
    cr_expect_eq(info->cipher, cipher);
    cr_expect_eq(info->n_secret, n_secret);
    cr_expect_arr_eq(info->client_secret, c.secret[0], n_secret);
    cr_expect_arr_eq(info->server_secret, c.secret[1], n_secret);
    cr_expect_eq(info->n_server_records, 1, "one ticket");
    cr_expect_eq(info->record_plain_max, NJ_TLS_CONTENT_MAX);
    cr_expect_str_eq(info->server_name, "a.test");
    cr_expect_str_empty(info->client_subject);
    cr_expect_not(info->resumed);
    SSL_get0_alpn_selected(c.ssl, &alpn, &n_alpn);
    cr_expect(n_alpn == 2 && memcmp(alpn, "h2", 2) == 0);
    cr_expect_neq(c.session, NULL);
    leave(&m);
    client_close(&c);
    nj_tls_server_context_put(context);
}

Test(tls_handshake, both_sides_have_the_same_secrets)
{
    agree("TLS_AES_128_GCM_SHA256", NJ_TLS_AES_128_GCM_SHA256, 32);
    agree("TLS_AES_256_GCM_SHA384", NJ_TLS_AES_256_GCM_SHA384, 48);
    agree("TLS_CHACHA20_POLY1305_SHA256", NJ_TLS_CHACHA20_POLY1305_SHA256, 32);
}

/* Also application data that follows the client's Finished at once is left to the caller. */
Test(tls_handshake, bytes_arrive_in_any_pieces)
{
    struct nj_tls_server_context *context = ecdsa_context();
    struct nj_prng rng;

    nj_prng_init(&rng, test_seed());
    for (unsigned i = 0; i < 20; i++) {
        struct client c;
        struct meeting m;
        client_open(&c);
        client_start(&c);
        meet(&m, context, &c, &rng);
        cr_assert_eq(m.result, NJ_TLS_HANDSHAKE_DONE);
        cr_assert_eq(m.n_pending, 0);
        leave(&m);
        client_close(&c);
    }
    nj_tls_server_context_put(context);
}

Test(tls_handshake, data_after_finished_is_not_used)
{
    struct nj_tls_server_context *context = ecdsa_context();
    struct nj_tls_handshake *h = nj_tls_handshake_new(context);
    struct client c;
    uint8_t bytes[16384];
    const uint8_t *out;
    uint32_t n_used;

    client_open(&c);
    client_start(&c);
    SSL_do_handshake(c.ssl);
    int n = BIO_read(c.out, bytes, sizeof bytes);
    cr_assert_eq(nj_tls_handshake_input(h, bytes, (uint32_t)n, &n_used), NJ_TLS_HANDSHAKE_MORE);
    uint32_t n_out = nj_tls_handshake_output(h, &out);
    BIO_write(c.in, out, (int)n_out);
    cr_assert_eq(SSL_do_handshake(c.ssl), 1);
    int n_finished = BIO_pending(c.out);
    cr_assert_eq(SSL_write(c.ssl, "PRI", 3), 3);
    n = BIO_read(c.out, bytes, sizeof bytes);
    cr_assert_eq(nj_tls_handshake_input(h, bytes, (uint32_t)n, &n_used), NJ_TLS_HANDSHAKE_DONE);
    cr_assert_eq(n_used, (uint32_t)n_finished);
    nj_tls_handshake_free(h);
    client_close(&c);
    nj_tls_server_context_put(context);
}

/* Our record layer goes on where libssl ended, in both directions. */
static void exchange_data(const char *suites)
{
    struct nj_tls_server_context *context = ecdsa_context();
    struct nj_tls_aead *aead = nj_tls_aead_new(NJ_TLS_ENGINE_AUTO);
    struct nj_tls_kdf *kdf = nj_tls_kdf_new();
    struct nj_tls_expanded *expanded = aligned_alloc(64, nj_tls_expanded_bytes(aead));
    struct nj_tls_keys read_keys, write_keys;
    struct nj_tls_opened opened;
    struct client c;
    struct meeting m;
    uint8_t record[256], text[NJ_TLS_OPEN_ROOM];

    memset(expanded, 0, nj_tls_expanded_bytes(aead));
    client_open(&c);
    SSL_CTX_set_ciphersuites(c.ctx, suites);
    client_start(&c);
    meet(&m, context, &c, NULL);
    cr_assert_eq(m.result, NJ_TLS_HANDSHAKE_DONE);
    const struct nj_tls_handshake_info *info = nj_tls_handshake_info(m.h);
    cr_assert(nj_tls_keys_derive(&read_keys, kdf, info->cipher, info->client_secret));
    cr_assert(nj_tls_keys_derive(&write_keys, kdf, info->cipher, info->server_secret));
    write_keys.record_number = info->n_server_records;
    for (unsigned i = 0; i < 3; i++) {
        cr_assert_eq(SSL_write(c.ssl, "from client", 11), 11);
        int n = BIO_read(c.out, record, sizeof record);
        struct nj_tls_src sealed = {record, (uint32_t)n};
        cr_assert_eq(
            nj_tls_record_open(aead, &read_keys, expanded, &sealed, 1, text, sizeof text, &opened),
            0);
        cr_expect(opened.n_bytes == 11 && memcmp(text, "from client", 11) == 0);
        struct nj_tls_src plain = {(const uint8_t *)"from server", 11};
        struct nj_tls_dst out = {record, sizeof record};
        n = nj_tls_record_seal(aead, &write_keys, expanded, NJ_TLS_APPLICATION_DATA, &plain, 1,
                               &out, 1);
        cr_assert_gt(n, 0);
        BIO_write(c.in, record, n);
        cr_assert_eq(SSL_read(c.ssl, text, sizeof text), 11);
        cr_expect_arr_eq(text, "from server", 11);
    }
    leave(&m);
    client_close(&c);
    nj_tls_expanded_wipe(aead, expanded);
    free(expanded);
    nj_tls_kdf_free(kdf);
    nj_tls_aead_free(aead);
    nj_tls_server_context_put(context);
}

Test(tls_handshake, records_follow_in_both_directions)
{
    exchange_data("TLS_AES_128_GCM_SHA256");
    exchange_data("TLS_AES_256_GCM_SHA384");
    exchange_data("TLS_CHACHA20_POLY1305_SHA256");
}

Test(tls_handshake, a_group_that_the_client_did_not_send_takes_a_retry)
{
    struct nj_tls_server_context *context = ecdsa_context();
    struct client c;
    struct meeting m;

    client_open(&c);
    SSL_CTX_set1_groups_list(c.ctx, "P-521:P-256");
    client_start(&c);
    meet(&m, context, &c, NULL);
    cr_assert_eq(m.result, NJ_TLS_HANDSHAKE_DONE);
    leave(&m);
    client_close(&c);
    nj_tls_server_context_put(context);
}

/* ---- tickets ---- */

Test(tls_handshake, tickets_are_good_for_three_keys_and_another_context)
{
    struct nj_tls_server_context *context = ecdsa_context(), *reloaded = ecdsa_context();
    SSL_SESSION *session = NULL;

    cr_expect_not(resumes(context, &session));
    /* The life of a ticket, of which its key is kept for all: two whole periods after its own. */
    cr_expect_eq(SSL_SESSION_get_ticket_lifetime_hint(session), NJ_TLS_TICKET_LIFE_S);
    cr_expect(resumes(context, &session));
    cr_expect_eq(SSL_SESSION_get_ticket_lifetime_hint(session), NJ_TLS_TICKET_LIFE_S);
    cr_expect(resumes(reloaded, &session), "after a reload");
    rotate(2);
    rotate(3);
    cr_expect(resumes(reloaded, &session), "the oldest key that is kept");
    rotate(4);
    rotate(5);
    rotate(6);
    cr_expect_not(resumes(reloaded, &session), "its key is forgotten: a full handshake");
    SSL_SESSION_free(session);
    nj_tls_server_context_put(context);
    nj_tls_server_context_put(reloaded);
}

/* ---- certificates ---- */

static void expect_cert(struct nj_tls_server_context *context, const char *name,
                        const char *sigalgs, const struct test_cert *wanted)
{
    struct client c;
    struct meeting m;

    client_open(&c);
    if (sigalgs)
        SSL_CTX_set1_sigalgs_list(c.ctx, sigalgs);
    client_start(&c);
    if (name)
        SSL_set_tlsext_host_name(c.ssl, name);
    meet(&m, context, &c, NULL);
    cr_assert_eq(m.result, NJ_TLS_HANDSHAKE_DONE);
    cr_expect_eq(X509_cmp(SSL_get0_peer_certificate(c.ssl), wanted->x), 0, "%s", name);
    const char *acknowledged = SSL_SESSION_get0_hostname(SSL_get_session(c.ssl));
    size_t n = name ? strlen(name) : 0;
    bool is_known =
        name && X509_check_host(wanted->x, name, n - (name[n - 1] == '.'), 0, NULL) == 1;
    cr_expect_eq(acknowledged != NULL, is_known, "%s (RFC 6066 3)", name);
    leave(&m);
    client_close(&c);
}

Test(tls_handshake, the_server_name_and_the_signature_algorithms_choose)
{
    const struct nj_tls_identity_files files[] = {
        {ecdsa.cert, ecdsa.key}, {rsa.cert, rsa.key}, {other.cert, other.key}};
    struct nj_tls_server_context *context = context_with(files, 3);

    expect_cert(context, NULL, NULL, &ecdsa);
    expect_cert(context, "a.test", NULL, &ecdsa);
    expect_cert(context, "a.test", "rsa_pss_rsae_sha256", &rsa);
    expect_cert(context, "x.b.test", NULL, &other);
    expect_cert(context, "x.b.test.", NULL, &other);
    expect_cert(context, "x.b.test..", NULL, &ecdsa);
    expect_cert(context, ".", NULL, &ecdsa);
    expect_cert(context, "unknown.test", NULL, &ecdsa);
    nj_tls_server_context_put(context);
}

/* In any order, and in capital letters, too. Else the first one answers all clients of a.test. */
Test(tls_handshake, certificates_with_the_same_set_of_names_are_offered_together)
{
    static const char *const names[] = {"A.test,DNS:b.test,IP:192.0.2.1", "a.test",
                                        "a.test,DNS:c.test,IP:192.0.2.1",
                                        "a.test,DNS:b.test,IP:192.0.2.2"};
    struct test_cert first, second;

    make_cert(&first, folder, "first", "b.test,IP:192.0.2.1,DNS:a.test", false, &authority);
    for (unsigned i = 0; i < NJ_ARRAY_LEN(names); i++) {
        make_cert(&second, folder, "second", names[i], true, &authority);
        const struct nj_tls_identity_files files[] = {{first.cert, first.key},
                                                      {second.cert, second.key}};
        struct nj_tls_server_context *context = context_with(files, 2);
        cr_expect_eq(context->n_identities, i == 0 ? 1 : 2, "%s", names[i]);
        expect_cert(context, "a.test", NULL, &first);
        if (i == 0)
            expect_cert(context, "b.test", "rsa_pss_rsae_sha256", &second);
        nj_tls_server_context_put(context);
        free_cert(&second);
    }
    free_cert(&first);
}

Test(tls_handshake, a_client_certificate_is_verified)
{
    const struct nj_tls_identity_files files = {ecdsa.cert, ecdsa.key};
    const struct nj_tls_server_config config = {.identities = &files,
                                                .n_identities = 1,
                                                .client_ca = authority.cert,
                                                .client_cert_required = true};
    struct nj_tls_server_context *context = nj_tls_server_context_new(&config, why, sizeof why);
    struct test_cert stranger;

    cr_assert(context, "%s", why);
    make_cert(&stranger, folder, "stranger", "stranger.test", false, NULL);
    const struct test_cert *shown[] = {&client_cert, &stranger, NULL};
    for (unsigned i = 0; i < 3; i++) {
        struct client c;
        struct meeting m;
        client_open(&c);
        if (shown[i]) {
            SSL_CTX_use_certificate(c.ctx, shown[i]->x);
            SSL_CTX_use_PrivateKey(c.ctx, shown[i]->pkey);
        }
        client_start(&c);
        meet(&m, context, &c, NULL);
        if (i == 0) {
            cr_assert_eq(m.result, NJ_TLS_HANDSHAKE_DONE);
            cr_expect_str_eq(nj_tls_handshake_info(m.h)->client_subject, "CN=client");
            cr_expect_eq(nj_tls_handshake_info(m.h)->n_server_records, 0, "no tickets");
        } else {
            cr_assert_eq(m.result, NJ_TLS_HANDSHAKE_FAILED);
            cr_expect_eq(nj_tls_handshake_failure(m.h), NJ_TLS_FAIL_CLIENT_CERT);
            cr_expect_eq(m.alert, i == 1 ? SSL_AD_UNKNOWN_CA : SSL_AD_CERTIFICATE_REQUIRED);
        }
        leave(&m);
        client_close(&c);
    }
    free_cert(&stranger);
    nj_tls_server_context_put(context);
}

/* `a`: the authority of clients, or NULL. */
static struct nj_tls_server_context *context_of_authority(const struct test_cert *a, bool required)
{
    const struct nj_tls_identity_files files = {ecdsa.cert, ecdsa.key};
    const struct nj_tls_server_config config = {.identities = &files,
                                                .n_identities = 1,
                                                .id = 1 + (a != NULL) + required,
                                                .client_ca = a ? a->cert : NULL,
                                                .client_cert_required = required,
                                                .tickets = &tickets};
    struct nj_tls_server_context *context = nj_tls_server_context_new(&config, why, sizeof why);

    cr_assert(context, "%s", why);
    return context;
}

/* A handshake under `context`, of the session if it is not NULL, ends after a reload has put
 * `reloaded` in its place. Leaves a new session, or none after a failure. */
static void end_after_reload(struct nj_tls_server_context *context,
                             struct nj_tls_server_context *reloaded, bool shows_cert,
                             SSL_SESSION **session, enum nj_tls_handshake_result wanted)
{
    struct nj_tls_current_context current;
    struct client c;
    struct meeting m;
    const uint8_t *out;

    nj_tls_server_context_take(reloaded);
    nj_tls_current_context_init(&current, reloaded);
    client_open(&c);
    if (shows_cert) {
        SSL_CTX_use_certificate(c.ctx, client_cert.x);
        SSL_CTX_use_PrivateKey(c.ctx, client_cert.pkey);
    }
    client_start(&c);
    if (*session)
        SSL_set_session(c.ssl, *session);
    meet(&m, context, &c, NULL);
    cr_assert_eq(m.result, NJ_TLS_HANDSHAKE_DONE);
    cr_expect_eq(nj_tls_handshake_info(m.h)->resumed, *session != NULL);
    cr_expect_gt(nj_tls_handshake_output(m.h, &out), 0, "a ticket");
    cr_expect_eq(nj_tls_handshake_recheck(m.h, &current), wanted);
    if (wanted == NJ_TLS_HANDSHAKE_FAILED) {
        cr_expect_eq(nj_tls_handshake_failure(m.h), NJ_TLS_FAIL_CLIENT_CERT);
        cr_expect_eq(nj_tls_handshake_output(m.h, &out), 0, "no ticket");
    }
    SSL_SESSION_free(*session);
    *session = wanted == NJ_TLS_HANDSHAKE_DONE ? SSL_get1_session(c.ssl) : NULL;
    leave(&m);
    client_close(&c);
    nj_tls_current_context_fini(&current);
}

Test(tls_handshake, a_client_whose_authority_a_reload_removed_is_refused_at_the_end)
{
    struct test_cert stranger;
    SSL_SESSION *session = NULL;

    make_cert(&stranger, folder, "stranger", "stranger.test", false, NULL);
    struct nj_tls_server_context *context = context_of_authority(&authority, false),
                                 *same = context_of_authority(&authority, false),
                                 *another = context_of_authority(&stranger, false);
    end_after_reload(context, context, true, &session, NJ_TLS_HANDSHAKE_DONE);
    end_after_reload(context, same, true, &session, NJ_TLS_HANDSHAKE_DONE); /* a resumed one */
    end_after_reload(context, another, true, &session, NJ_TLS_HANDSHAKE_FAILED);
    end_after_reload(context, another, true, &session, NJ_TLS_HANDSHAKE_FAILED);
    end_after_reload(context, another, false, &session, NJ_TLS_HANDSHAKE_DONE); /* no certificate */
    SSL_SESSION_free(session);
    nj_tls_server_context_put(context);
    nj_tls_server_context_put(same);
    nj_tls_server_context_put(another);
    free_cert(&stranger);
}

/* Nor does it get a ticket, with which it could come again. */
Test(tls_handshake, a_client_without_the_certificate_that_a_reload_requires_is_refused)
{
    SSL_SESSION *session = NULL;
    struct nj_tls_server_context *free_for_all = context_of_authority(NULL, false),
                                 *optional = context_of_authority(&authority, false),
                                 *required = context_of_authority(&authority, true);

    end_after_reload(free_for_all, optional, false, &session, NJ_TLS_HANDSHAKE_DONE);
    SSL_SESSION_free(session);
    session = NULL;
    end_after_reload(free_for_all, required, false, &session, NJ_TLS_HANDSHAKE_FAILED);
    end_after_reload(optional, required, false, &session, NJ_TLS_HANDSHAKE_FAILED);
    end_after_reload(optional, required, true, &session, NJ_TLS_HANDSHAKE_DONE);
    end_after_reload(optional, free_for_all, true, &session, NJ_TLS_HANDSHAKE_DONE);
    SSL_SESSION_free(session);
    nj_tls_server_context_put(free_for_all);
    nj_tls_server_context_put(optional);
    nj_tls_server_context_put(required);
}

/* ---- ALPN (RFC 7301) ---- */

#define NONE -1 /* no protocol in common */

/* What a client offers, each name behind its length; NULL: no ALPN. `h2_only`: what is agreed when
 * the context does not permit HTTP/1.1. */
static const struct {
    const char *offered;
    int h2_only, both;
} offers[] = {
    {"\x02h2", NJ_TLS_HTTP2, NJ_TLS_HTTP2},
    {"\x08http/1.1", NONE, NJ_TLS_HTTP1},
    {"\x02h2\x08http/1.1", NJ_TLS_HTTP2, NJ_TLS_HTTP2},
    {"\x08http/1.1\x02h2", NJ_TLS_HTTP2, NJ_TLS_HTTP2},
    {"\x02h3\x08http/1.0\x08http/1.1\x04spdy", NONE, NJ_TLS_HTTP1},
    {"\x02h3\x08http/1.1\x03h2c\x02h2", NJ_TLS_HTTP2, NJ_TLS_HTTP2},
    {NULL, NONE, NJ_TLS_HTTP1},
    {"\x08http/1.0", NONE, NJ_TLS_HTTP1},
    {"\x02H2\x08HTTP/1.1", NONE, NONE},
    {"\x03h2c\x01h\x09http/1.12\x07http/1.", NONE, NONE},
    {"\x0bh2\x08http/1.1", NONE, NONE}, /* one name, which has others in it */
};

static struct nj_tls_server_context *context_with_http1(bool http1)
{
    const struct nj_tls_identity_files files = {ecdsa.cert, ecdsa.key};
    const struct nj_tls_server_config config = {
        .identities = &files, .n_identities = 1, .tickets = &tickets, .http1 = http1};
    struct nj_tls_server_context *context = nj_tls_server_context_new(&config, why, sizeof why);

    cr_assert(context, "%s", why);
    return context;
}

static void expect_no_protocol(const struct meeting *m, const char *offered)
{
    cr_assert_eq(m->result, NJ_TLS_HANDSHAKE_FAILED, "%s", offered);
    cr_expect_eq(nj_tls_handshake_failure(m->h), NJ_TLS_FAIL_ALPN, "%s", offered);
    cr_expect_eq(m->alert, SSL_AD_NO_APPLICATION_PROTOCOL, "%s: alert %u", offered, m->alert);
}

static void expect_protocol(const struct meeting *m, const struct client *c, const char *offered,
                            int wanted)
{
    const char *name = !offered                          ? ""
                       : wanted == NJ_TLS_HTTP2          ? "h2"
                       : strstr(offered, "\x08http/1.1") ? "http/1.1"
                                                         : "http/1.0";
    const unsigned char *alpn;
    unsigned n;

    cr_assert_eq(m->result, NJ_TLS_HANDSHAKE_DONE, "%s", offered);
    cr_expect_eq((int)nj_tls_handshake_info(m->h)->protocol, wanted, "%s", offered);
    SSL_get0_alpn_selected(c->ssl, &alpn, &n);
    cr_expect(n == strlen(name) && memcmp(alpn ? (const char *)alpn : "", name, n) == 0, "%s: %.*s",
              offered, (int)n, alpn);
}

/* A handshake of the offer. Leaves the session, if one is asked for. */
static void offer(struct nj_tls_server_context *context, const char *offered, int wanted,
                  const char *groups, SSL_SESSION **session)
{
    struct client c;
    struct meeting m;

    client_open(&c);
    SSL_CTX_set_alpn_protos(c.ctx, (const uint8_t *)offered, offered ? strlen(offered) : 0);
    if (groups)
        SSL_CTX_set1_groups_list(c.ctx, groups);
    client_start(&c);
    if (session && *session)
        SSL_set_session(c.ssl, *session);
    meet(&m, context, &c, NULL);
    if (wanted == NONE)
        expect_no_protocol(&m, offered);
    else
        expect_protocol(&m, &c, offered, wanted);
    if (session) {
        cr_expect_eq(nj_tls_handshake_info(m.h)->resumed, *session != NULL, "%s", offered);
        SSL_SESSION_free(*session);
        *session = c.session;
        c.session = NULL;
    }
    leave(&m);
    client_close(&c);
}

Test(tls_handshake, h2_is_agreed_on_or_http1_if_it_is_permitted)
{
    struct nj_tls_server_context *h2_only = context_with_http1(false),
                                 *both = context_with_http1(true);

    for (unsigned i = 0; i < NJ_ARRAY_LEN(offers); i++) {
        offer(h2_only, offers[i].offered, offers[i].h2_only, NULL, NULL);
        offer(both, offers[i].offered, offers[i].both, NULL, NULL);
    }
    nj_tls_server_context_put(h2_only);
    nj_tls_server_context_put(both);
}

/* The client then sends its ClientHello twice. */
Test(tls_handshake, a_retry_agrees_on_the_same_protocol)
{
    struct nj_tls_server_context *both = context_with_http1(true);

    for (unsigned i = 0; i < NJ_ARRAY_LEN(offers); i++)
        offer(both, offers[i].offered, offers[i].both, "P-521:P-256", NULL);
    nj_tls_server_context_put(both);
}

/* Without early data, a ticket is not bound to a protocol (RFC 8446 4.2.10). */
Test(tls_handshake, each_resumption_negotiates_its_protocol)
{
    static const struct {
        const char *offered;
        int wanted;
    } turns[] = {
        {"\x02h2", NJ_TLS_HTTP2}, {"\x08http/1.1", NJ_TLS_HTTP1},
        {NULL, NJ_TLS_HTTP1},     {"\x08http/1.1\x02h2", NJ_TLS_HTTP2},
        {NULL, NJ_TLS_HTTP1},     {"\x02h2", NJ_TLS_HTTP2},
    };
    struct nj_tls_server_context *both = context_with_http1(true);
    SSL_SESSION *session = NULL;

    for (unsigned i = 0; i < NJ_ARRAY_LEN(turns); i++)
        offer(both, turns[i].offered, turns[i].wanted, NULL, &session);
    SSL_SESSION_free(session);
    nj_tls_server_context_put(both);
}

/* ---- refusals ---- */

static void expect_refusal(struct client *c, enum nj_tls_failure failure, uint8_t alert)
{
    struct nj_tls_server_context *context = ecdsa_context();
    struct meeting m;

    client_start(c);
    meet(&m, context, c, NULL);
    cr_assert_eq(m.result, NJ_TLS_HANDSHAKE_FAILED);
    cr_expect_eq(nj_tls_handshake_failure(m.h), failure, "%s, not %s",
                 failure_name(nj_tls_handshake_failure(m.h)), failure_name(failure));
    cr_expect_eq(m.alert, alert, "alert %u", m.alert);
    leave(&m);
    client_close(c);
    nj_tls_server_context_put(context);
}

Test(tls_handshake, refusals_have_an_alert_and_a_reason)
{
    static const uint8_t http1[] = "\x08http/1.1";
    struct client c;

    client_open(&c);
    SSL_CTX_set_max_proto_version(c.ctx, TLS1_2_VERSION);
    expect_refusal(&c, NJ_TLS_FAIL_VERSION, SSL_AD_PROTOCOL_VERSION);
    client_open(&c);
    SSL_CTX_set_alpn_protos(c.ctx, http1, sizeof http1 - 1);
    expect_refusal(&c, NJ_TLS_FAIL_ALPN, SSL_AD_NO_APPLICATION_PROTOCOL);
    client_open(&c);
    SSL_CTX_set_alpn_protos(c.ctx, NULL, 0);
    expect_refusal(&c, NJ_TLS_FAIL_ALPN, SSL_AD_NO_APPLICATION_PROTOCOL);
    client_open(&c);
    SSL_CTX_set1_sigalgs_list(c.ctx, "rsa_pss_rsae_sha256");
    expect_refusal(&c, NJ_TLS_FAIL_NEGOTIATION, SSL_AD_HANDSHAKE_FAILURE);
}

Test(tls_handshake, the_alert_of_a_client_is_a_failure)
{
    struct nj_tls_server_context *context = ecdsa_context();
    struct client c;
    struct meeting m;
    X509_STORE *nobody = X509_STORE_new();

    client_open(&c);
    SSL_CTX_set_cert_store(c.ctx, nobody); /* knows no authority */
    client_start(&c);
    meet(&m, context, &c, NULL);
    cr_assert_eq(m.result, NJ_TLS_HANDSHAKE_FAILED);
    cr_expect_eq(nj_tls_handshake_failure(m.h), NJ_TLS_FAIL_ALERT);
    leave(&m);
    client_close(&c);
    nj_tls_server_context_put(context);
}

Test(tls_handshake, garbage_and_long_records_fail)
{
    struct nj_tls_server_context *context = ecdsa_context();
    struct nj_prng rng;

    nj_prng_init(&rng, test_seed());
    for (unsigned i = 0; i < 2000; i++) {
        struct nj_tls_handshake *h = nj_tls_handshake_new(context);
        uint8_t bytes[600];
        uint32_t n = 5 + (uint32_t)nj_prng_below(&rng, sizeof bytes - 5), n_used;
        for (uint32_t k = 0; k < n; k++)
            bytes[k] = (uint8_t)nj_prng_below(&rng, 256);
        if (i % 2) { /* a record of a handshake */
            memcpy(bytes, "\x16\x03\x01", 3);
            bytes[3] = (uint8_t)((n - 5) >> 8);
            bytes[4] = (uint8_t)(n - 5);
        }
        cr_assert_neq(nj_tls_handshake_input(h, bytes, n, &n_used), NJ_TLS_HANDSHAKE_DONE);
        cr_assert_leq(n_used, n);
        nj_tls_handshake_free(h);
    }
    struct nj_tls_handshake *h = nj_tls_handshake_new(context);
    uint32_t n_used;
    cr_assert_eq(nj_tls_handshake_input(h, (const uint8_t *)"\x16\x03\x01\xff\xff....", 9, &n_used),
                 NJ_TLS_HANDSHAKE_FAILED);
    cr_expect_eq(nj_tls_handshake_failure(h), NJ_TLS_FAIL_MESSAGE);
    nj_tls_handshake_free(h);
    nj_tls_server_context_put(context);
}

/* ---- files ---- */

static void expect_error(const char *cert, const char *key, const char *message)
{
    const struct nj_tls_identity_files files = {cert, key};
    const struct nj_tls_server_config config = {.identities = &files, .n_identities = 1};

    cr_assert_null(nj_tls_server_context_new(&config, why, sizeof why));
    cr_expect(strstr(why, message), "%s: %s", message, why);
}

Test(tls_handshake, files_that_do_not_fit_are_named)
{
    expect_error("/nowhere/a.crt", ecdsa.key,
                 "/nowhere/a.crt: cannot be used as certificate: No "
                 "such file");
    expect_error(ecdsa.cert, "/nowhere/a.key", "/nowhere/a.key: cannot be used as private key");
    expect_error(ecdsa.key, ecdsa.key, "cannot be used as certificate chain in PEM");
    expect_error(ecdsa.cert, ecdsa.cert, "cannot be used as private key in PEM");
    expect_error(ecdsa.cert, other.key, "is not the private key of the certificate in");
    expect_error(rsa.cert, ecdsa.key, "is not the private key of the certificate in");
}

static const char *write_file(const char *text, size_t n)
{
    static char path[96];

    snprintf(path, sizeof path, "%s/odd", folder);
    FILE *f = fopen(path, "we");
    cr_assert(f && fwrite(text, 1, n, f) == n);
    fclose(f);
    return path;
}

Test(tls_handshake, the_likely_cause_is_named_when_a_file_has_no_certificate_or_key)
{
    static const char encrypted[] = "-----BEGIN ENCRYPTED PRIVATE KEY-----\nMIIFHDBOBgkqhkiG9w0B\n"
                                    "-----END ENCRYPTED PRIVATE KEY-----\n";
    static const char request[] = "-----BEGIN CERTIFICATE REQUEST-----\nMIHEMGwCAQAwDDEKMAgG\n"
                                  "-----END CERTIFICATE REQUEST-----\n";
    static const char der[] = "\x30\x82\x01\x0a\x02\x82\x01\x01";

    expect_error(ecdsa.key, ecdsa.cert,
                 "a private key and no certificate: are cert and key swapped?");
    expect_error(ecdsa.cert, ecdsa.cert,
                 "a certificate and no private key: are cert and key swapped?");
    expect_error(ecdsa.cert, write_file("", 0), "it is empty");
    expect_error(write_file("", 0), ecdsa.key, "it is empty");
    expect_error(ecdsa.cert, write_file(encrypted, sizeof encrypted - 1), "it has a password");
    expect_error(write_file(request, sizeof request - 1), ecdsa.key, "it is a request for");
    expect_error(ecdsa.cert, write_file(der, sizeof der - 1),
                 "it is in DER: convert it by openssl pkey");
    expect_error(write_file(der, sizeof der - 1), ecdsa.key, "in DER: convert it by openssl x509");
    expect_error(write_file("hello\n", 6), ecdsa.key, "it has no line that begins with -----BEGIN");
    unlink(write_file("", 0));
}
