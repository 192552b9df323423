/* SPDX-License-Identifier: BSD-3-Clause */
/* Each site has certificates and authorities of its own. The server name chooses a certificate,
 * says whether the client is asked for one, and limits the names with which a session is resumed.
 */
#include "site/site_table.h"
#include "support/tls_meeting.h"
#include "tls/cert_dates.h"

TestSuite(tls_server_name, .init = begin, .fini = end);

/* [tls] has `ecdsa`; a.site and its names have `rsa`; b.site has `other` and asks for certificates
 * of `authority`; c.site and d.site have `rsa` and ask, too; e.site has what [tls] has. */
enum { OF_TLS, OF_A, OF_B, OF_C };

static struct nj_tls_server_context *context_of_sites(bool required)
{
    static const struct nj_str a[] = {NJ_STR_INIT("a.site"), NJ_STR_INIT("*.a.site")},
                               b = NJ_STR_INIT("b.site"), c = NJ_STR_INIT("c.site"),
                               d = NJ_STR_INIT("d.site"), e = NJ_STR_INIT("e.site");
    const struct nj_site_def defs[] = {
        {.names = (struct nj_str *)a, .n_names = 2, .rules.identity = {1, OF_A}},
        {.names = (struct nj_str *)&b, .n_names = 1, .rules.identity = {2, OF_B}},
        {.names = (struct nj_str *)&c, .n_names = 1, .rules.identity = {3, OF_C}},
        {.names = (struct nj_str *)&d, .n_names = 1, .rules.identity = {4, OF_C}},
        {.names = (struct nj_str *)&e, .n_names = 1, .rules.identity = {5, OF_TLS}}};
    const struct nj_tls_identity_files of_tls = {ecdsa.cert, ecdsa.key}, of_a = {rsa.cert, rsa.key},
                                       of_b = {other.cert, other.key};
    const struct nj_tls_set sets[] = {
        {.id = OF_A, .identities = &of_a, .n_identities = 1},
        {OF_B, &of_b, 1, .client_ca = authority.cert, .client_cert_required = required},
        {OF_C, &of_a, 1, .client_ca = authority.cert, .client_cert_required = required},
        {OF_C, &of_a, 1, .client_ca = authority.cert, .client_cert_required = required},
        {.id = OF_TLS}};
    const char *cause;
    const struct nj_tls_server_config config = {
        .identities = &of_tls,
        .n_identities = 1,
        .sets = sets,
        .n_sets = NJ_ARRAY_LEN(sets),
        .sites = nj_sites_new(defs, NJ_ARRAY_LEN(defs), NULL, 0, 0, &cause),
        .tickets = &tickets};
    struct nj_tls_server_context *context = nj_tls_server_context_new(&config, why, sizeof why);

    cr_assert(context, "%s", why);
    return context;
}

/* A handshake. Keeps the session in *session, which it offers before, if there is one. Returns the
 * result. */
static enum nj_tls_handshake_result shake(struct nj_tls_server_context *context, const char *name,
                                          const struct test_cert *shown, SSL_SESSION **session,
                                          struct nj_tls_handshake_info *info, X509 **cert)
{
    struct client c;
    struct meeting m;

    client_open(&c);
    if (shown) {
        SSL_CTX_use_certificate(c.ctx, shown->x);
        SSL_CTX_use_PrivateKey(c.ctx, shown->pkey);
    }
    client_start(&c);
    if (name)
        SSL_set_tlsext_host_name(c.ssl, name);
    if (session && *session)
        SSL_set_session(c.ssl, *session);
    meet(&m, context, &c, NULL);
    if (m.result == NJ_TLS_HANDSHAKE_DONE)
        *info = *nj_tls_handshake_info(m.h);
    if (cert)
        *cert = SSL_get1_peer_certificate(c.ssl);
    if (session && c.session) {
        SSL_SESSION_free(*session);
        *session = c.session;
        c.session = NULL;
    }
    enum nj_tls_handshake_result result = m.result;
    leave(&m);
    client_close(&c);
    return result;
}

Test(tls_server_name, the_site_of_a_server_name_chooses)
{
    static const struct {
        const char *name;
        const struct test_cert *wanted;
        uint64_t site, files;
    } cases[] = {
        {"a.site", &rsa, 1, OF_A},
        {"A.Site.", &rsa, 1, OF_A},
        {"x.y.a.site", &rsa, 1, OF_A},
        {"b.site", &other, 2, OF_B},
        {"c.site", &rsa, 3, OF_C},
        {"d.site", &rsa, 4, OF_C},
        {"e.site", &ecdsa, 5, OF_TLS},
        {"a.test", &ecdsa, 0, OF_TLS},
        {NULL, &ecdsa, 0, OF_TLS},
        {"x.b.test", &ecdsa, 0, OF_TLS}, /* only [tls] answers names of no site */
    };
    struct nj_tls_server_context *context = context_of_sites(false);
    struct nj_tls_handshake_info info;
    struct nj_tls_cert_text text;

    for (unsigned i = 0; i < NJ_ARRAY_LEN(cases); i++) {
        X509 *cert;
        cr_assert_eq(shake(context, cases[i].name, NULL, NULL, &info, &cert), NJ_TLS_HANDSHAKE_DONE,
                     "%s", cases[i].name);
        cr_expect_eq(X509_cmp(cert, cases[i].wanted->x), 0, "%s", cases[i].name);
        cr_expect(info.identity.site == cases[i].site && info.identity.files == cases[i].files,
                  "%s", cases[i].name);
        X509_free(cert);
        nj_tls_cert_of_name(context, cases[i].name ? cases[i].name : "", &text);
        cr_expect_str_eq(text.path, cases[i].wanted->cert, "%s", cases[i].name);
    }
    cr_expect(nj_tls_cert_describe(context, 2, &text) && strcmp(text.path, other.cert) == 0);
    cr_expect_not(nj_tls_cert_describe(context, 3, &text), "each file once");
    nj_tls_server_context_put(context);
}

Test(tls_server_name, each_site_asks_clients_or_not)
{
    struct nj_tls_handshake_info info;

    for (int required = 0; required < 2; required++) {
        struct nj_tls_server_context *context = context_of_sites(required);
        for (int shows = 0; shows < 2; shows++) {
            const struct test_cert *shown = shows ? &client_cert : NULL;
            cr_expect_eq(shake(context, "a.site", shown, NULL, &info, NULL), NJ_TLS_HANDSHAKE_DONE);
            cr_expect_str_eq(info.client_subject, "", "it is not asked");
            enum nj_tls_handshake_result wanted =
                required && !shows ? NJ_TLS_HANDSHAKE_FAILED : NJ_TLS_HANDSHAKE_DONE;
            cr_assert_eq(shake(context, "b.site", shown, NULL, &info, NULL), wanted);
            if (wanted == NJ_TLS_HANDSHAKE_DONE)
                cr_expect_str_eq(info.client_subject, shows ? "CN=client" : "");
        }
        nj_tls_server_context_put(context);
    }
}

/* RFC 8446 4.6.1: the session of another site would bring its client's certificate along. */
Test(tls_server_name, a_session_belongs_to_its_set)
{
    static const char *const names[] = {"a.site", "x.a.site", "b.site", "c.site",
                                        "d.site", "e.site",   "a.test", NULL};
    static const int set[] = {OF_A, OF_A, OF_B, OF_C, OF_C, OF_TLS, OF_TLS, OF_TLS};
    struct nj_tls_server_context *context = context_of_sites(false);
    struct nj_tls_handshake_info info;

    for (unsigned i = 0; i < NJ_ARRAY_LEN(names); i++)
        for (unsigned k = 0; k < NJ_ARRAY_LEN(names); k++) {
            SSL_SESSION *session = NULL;
            cr_assert_eq(shake(context, names[i], &client_cert, &session, &info, NULL),
                         NJ_TLS_HANDSHAKE_DONE);
            cr_expect_not(info.resumed);
            cr_assert_eq(shake(context, names[k], NULL, &session, &info, NULL),
                         NJ_TLS_HANDSHAKE_DONE);
            cr_expect_eq(info.resumed, set[i] == set[k], "%s, then %s", names[i], names[k]);
            bool asks = set[k] == OF_B || set[k] == OF_C;
            cr_expect_str_eq(info.client_subject, info.resumed && asks ? "CN=client" : "");
            SSL_SESSION_free(session);
        }
    nj_tls_server_context_put(context);
}

Test(tls_server_name, an_error_of_a_site_names_its_files)
{
    const struct nj_tls_identity_files good = {ecdsa.cert, ecdsa.key}, bad = {rsa.cert, ecdsa.key};
    const struct nj_tls_set set = {.id = 1, .identities = &bad, .n_identities = 1};
    const struct nj_tls_server_config config = {
        .identities = &good, .n_identities = 1, .sets = &set, .n_sets = 1};
    char wanted[sizeof why];

    cr_expect_null(nj_tls_server_context_new(&config, why, sizeof why));
    snprintf(wanted, sizeof wanted, "%s: is not the private key of the certificate in %s",
             ecdsa.key, rsa.cert);
    cr_expect_str_eq(why, wanted);
}
