/* SPDX-License-Identifier: BSD-3-Clause */
/* Records of a handshake, with OpenSSL as the client. The server obeys the client's limits of
 * length, and answers bytes that are no record with an alert. */
#include "support/tls_meeting.h"

TestSuite(tls_handshake_records, .init = begin, .fini = end);

/* ---- lengths of records ---- */

#define EXT_RECORD_LIMIT 28u /* RFC 8449 6 */

static const uint8_t limit_600[2] = {600 >> 8, 600 & 0xff};

static int add_limit(SSL *ssl, unsigned type, unsigned context, const unsigned char **out,
                     size_t *n_out, X509 *x, size_t chain, int *alert, void *arg)
{
    *out = limit_600;
    *n_out = sizeof limit_600;
    return 1;
}

static int see_limit(SSL *ssl, unsigned type, unsigned context, const unsigned char *in,
                     size_t n_in, X509 *x, size_t chain, int *alert, void *arg)
{
    *(bool *)arg = true;
    return 1;
}

static void ask_for_limit(struct client *c, bool *is_answered)
{
    *is_answered = false;
    SSL_CTX_add_custom_ext(c->ctx, EXT_RECORD_LIMIT,
                           SSL_EXT_CLIENT_HELLO | SSL_EXT_TLS1_3_ENCRYPTED_EXTENSIONS |
                               SSL_EXT_TLS1_3_ONLY,
                           add_limit, NULL, NULL, see_limit, is_answered);
}

/* The longest ciphertext among the records that wait at the client. */
static uint32_t longest_record(const struct client *c)
{
    uint8_t *p;
    uint32_t n = (uint32_t)BIO_get_mem_data(c->in, &p), longest = 0;

    for (uint32_t at = 0; at + NJ_TLS_HEADER_BYTES <= n;) {
        uint32_t n_record = (uint32_t)(p[at + 3] << 8 | p[at + 4]);
        if (p[at] == NJ_TLS_APPLICATION_DATA && n_record > longest)
            longest = n_record;
        at += NJ_TLS_HEADER_BYTES + n_record;
    }
    return longest;
}

/* RFC 8449 4: it is for all protected records. */
Test(tls_handshake_records, record_size_limit_holds_for_the_handshake)
{
    const struct nj_tls_identity_files files = {rsa.cert, rsa.key};
    struct nj_tls_server_context *context = context_with(&files, 1);
    struct nj_tls_handshake *h = nj_tls_handshake_new(context);
    struct client c;
    uint8_t hello[4096];
    const uint8_t *out;
    uint32_t n_used;
    bool is_answered;

    client_open(&c);
    ask_for_limit(&c, &is_answered);
    client_start(&c);
    SSL_do_handshake(c.ssl);
    int n = BIO_read(c.out, hello, sizeof hello);
    cr_assert_eq(nj_tls_handshake_input(h, hello, (uint32_t)n, &n_used), NJ_TLS_HANDSHAKE_MORE);
    uint32_t n_out = nj_tls_handshake_output(h, &out);
    BIO_write(c.in, out, (int)n_out);
    cr_expect_leq(longest_record(&c), 600 + 16, "with the tag");
    cr_expect_gt(longest_record(&c), 500, "the certificate is longer");
    cr_assert_eq(SSL_do_handshake(c.ssl), 1);
    cr_expect(is_answered);
    cr_expect_eq(nj_tls_handshake_info(h)->record_plain_max, 599);
    nj_tls_handshake_free(h);
    client_close(&c);
    nj_tls_server_context_put(context);
}

/* RFC 6066 4, with and without record_size_limit, to which no answer may come then (RFC 8449 5). A
 * ticket does not keep it. */
Test(tls_handshake_records, max_fragment_length_bounds_records)
{
    struct nj_tls_server_context *context = ecdsa_context();
    SSL_SESSION *session = NULL;

    for (unsigned both = 0; both < 2; both++) {
        struct client c;
        struct meeting m;
        bool is_answered = false;
        client_open(&c);
        SSL_CTX_set_tlsext_max_fragment_length(c.ctx, TLSEXT_max_fragment_length_1024);
        if (both)
            ask_for_limit(&c, &is_answered);
        client_start(&c);
        meet(&m, context, &c, NULL);
        cr_assert_eq(m.result, NJ_TLS_HANDSHAKE_DONE);
        cr_expect_eq(SSL_SESSION_get_max_fragment_length(SSL_get_session(c.ssl)),
                     TLSEXT_max_fragment_length_1024);
        cr_expect_eq(nj_tls_handshake_info(m.h)->record_plain_max, both ? 599 : 1023);
        cr_expect_not(is_answered);
        SSL_SESSION_free(session);
        session = c.session;
        c.session = NULL;
        leave(&m);
        client_close(&c);
    }
    cr_expect_not(resumes_with(context, &session, TLSEXT_max_fragment_length_1024));
    SSL_SESSION_free(session);
    nj_tls_server_context_put(context);
}

/* RFC 8446 5.1: legacy_record_version "MUST be ignored for all purposes". Also in records of
 * ChangeCipherSpec (appendix D.4) and in those that the handshake's keys protect. */
Test(tls_handshake_records, versions_are_ignored)
{
    static const uint8_t change_cipher_spec[] = {20, 3, 3, 0, 1, 1};
    static const uint8_t versions[][2] = {{3, 1}, {3, 0}, {3, 4}, {2, 0}, {0, 0}, {0xff, 0xff}};
    struct nj_tls_server_context *context = ecdsa_context();

    for (unsigned i = 0; i < NJ_ARRAY_LEN(versions); i++) {
        struct client c;
        struct meeting m = {.h = nj_tls_handshake_new(context)};
        client_open(&c);
        client_start(&c);
        SSL_do_handshake(c.ssl);
        m.n_pending = (uint32_t)BIO_read(c.out, m.pending, sizeof m.pending);
        memcpy(m.pending + 1, versions[i], 2); /* of the ClientHello */
        memcpy(m.pending + m.n_pending, change_cipher_spec, sizeof change_cipher_spec);
        memcpy(m.pending + m.n_pending + 1, versions[i], 2);
        m.n_pending += (uint32_t)sizeof change_cipher_spec;
        serve(&m, &c);
        cr_assert_eq(m.result, NJ_TLS_HANDSHAKE_MORE, "%u.%u: %s", versions[i][0], versions[i][1],
                     failure_name(nj_tls_handshake_failure(m.h)));
        cr_assert_eq(SSL_do_handshake(c.ssl), 1);
        m.n_pending = (uint32_t)BIO_read(c.out, m.pending, sizeof m.pending);
        for (uint32_t at = 0; at < m.n_pending;
             at += NJ_TLS_HEADER_BYTES + (uint32_t)(m.pending[at + 3] << 8 | m.pending[at + 4]))
            memcpy(m.pending + at + 1, versions[i], 2);
        serve(&m, &c);
        cr_assert_eq(m.result, NJ_TLS_HANDSHAKE_DONE, "%u.%u: %s", versions[i][0], versions[i][1],
                     failure_name(nj_tls_handshake_failure(m.h)));
        leave(&m);
        client_close(&c);
    }
    nj_tls_server_context_put(context);
}

/* Our alert before the keys, and after them libssl's. */
Test(tls_handshake_records, records_that_cannot_be_one_get_an_alert)
{
    static const struct {
        uint8_t header[NJ_TLS_HEADER_BYTES];
        uint8_t alert;
    } bad[] = {{{22, 3, 1, 0x40, 1}, SSL_AD_RECORD_OVERFLOW},
               {{23, 3, 3, 0x41, 1}, SSL_AD_RECORD_OVERFLOW},
               {{24, 3, 3, 0, 1}, SSL_AD_UNEXPECTED_MESSAGE},
               {{'G', 'E', 'T', ' ', '/'}, SSL_AD_UNEXPECTED_MESSAGE}};
    struct nj_tls_server_context *context = ecdsa_context();

    for (unsigned i = 0; i < NJ_ARRAY_LEN(bad); i++) {
        struct nj_tls_handshake *h = nj_tls_handshake_new(context);
        const uint8_t *out;
        uint32_t n_used;
        cr_assert_eq(nj_tls_handshake_input(h, bad[i].header, sizeof bad[i].header, &n_used),
                     NJ_TLS_HANDSHAKE_FAILED);
        cr_assert_eq(nj_tls_handshake_output(h, &out), NJ_TLS_PLAIN_ALERT_BYTES);
        cr_expect(memcmp(out, "\x15\x03\x03\x00\x02\x02", 6) == 0 && out[6] == bad[i].alert);
        nj_tls_handshake_free(h);

        struct client c;
        struct meeting m = {.h = nj_tls_handshake_new(context)};
        client_open(&c);
        client_start(&c);
        SSL_set_ex_data(c.ssl, 1, &m);
        SSL_set_info_callback(c.ssl, on_client_alert);
        SSL_do_handshake(c.ssl);
        m.n_pending = (uint32_t)BIO_read(c.out, m.pending, sizeof m.pending);
        serve(&m, &c);
        cr_assert_eq(m.result, NJ_TLS_HANDSHAKE_MORE);
        memcpy(m.pending, bad[i].header, sizeof bad[i].header);
        m.n_pending = sizeof bad[i].header;
        serve(&m, &c);
        cr_assert_eq(m.result, NJ_TLS_HANDSHAKE_FAILED);
        cr_expect_eq(nj_tls_handshake_failure(m.h), NJ_TLS_FAIL_MESSAGE);
        SSL_do_handshake(c.ssl);
        SSL_read(c.ssl, m.pending, 1);
        cr_expect_eq(m.alert, i == 0 ? SSL_AD_UNEXPECTED_MESSAGE : bad[i].alert, "%u: %u", i,
                     m.alert);
        leave(&m);
        client_close(&c);
    }
    nj_tls_server_context_put(context);
}
