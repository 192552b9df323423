/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Handshakes of tls/handshake.h with OpenSSL as the client, on bytes in memory, and certificates
 * for them. A test program includes it once: it has variables.
 */
#pragma once

#include <criterion/criterion.h>
#include <string.h>
#include <sys/stat.h>

#include <openssl/err.h>

#include "base/compiler.h"
#include "base/prng.h"
#include "support/tls_certs.h"
#include "tls/aead.h"
#include "tls/handshake_internal.h"

static char folder[] = "/tmp/nj-tls-XXXXXX";
static struct test_cert authority, ecdsa, rsa, other, client_cert;
static struct nj_tls_ticket_keys tickets;
static char why[256];

static inline uint64_t test_seed(void)
{
    const char *given = getenv("NJ_TEST_SEED");
    uint64_t seed = given ? strtoull(given, NULL, 0) : 1;

    printf("seed %lu (NJ_TEST_SEED)\n", (unsigned long)seed);
    return seed;
}

static inline void rotate(uint8_t with)
{
    uint8_t random[sizeof(struct nj_tls_ticket_key)];
    memset(random, with, sizeof random);
    nj_tls_ticket_keys_rotate(&tickets, random);
}

static inline void begin(void)
{
    uint8_t random[sizeof(struct nj_tls_ticket_key)];

    cr_assert(mkdtemp(folder));
    make_cert(&authority, folder, "authority", "authority.test", false, NULL);
    make_cert(&ecdsa, folder, "ecdsa", "a.test", false, &authority);
    make_cert(&rsa, folder, "rsa", "a.test", true, &authority);
    make_cert(&other, folder, "other", "*.b.test", false, &authority);
    make_cert(&client_cert, folder, "client", "client.test", false, &authority);
    memset(random, 1, sizeof random);
    nj_tls_ticket_keys_init(&tickets, random);
}

static inline void end(void)
{
    free_cert(&authority);
    free_cert(&ecdsa);
    free_cert(&rsa);
    free_cert(&other);
    free_cert(&client_cert);
    rmdir(folder);
    nj_tls_ticket_keys_wipe(&tickets);
}

/* ---- the two sides ---- */

struct client {
    SSL_CTX *ctx;
    SSL *ssl;
    BIO *in, *out;
    uint8_t secret[2][NJ_TLS_SECRET_BYTES_MAX]; /* the client's, the server's */
    SSL_SESSION *session;
};

static inline struct client *client_of(const SSL *ssl)
{
    return SSL_get_app_data(ssl);
}

static inline void client_secret(const SSL *ssl, const char *line)
{
    static const char *const label[2] = {"CLIENT_TRAFFIC_SECRET_0 ", "SERVER_TRAFFIC_SECRET_0 "};

    for (unsigned i = 0; i < 2; i++) {
        if (strncmp(line, label[i], 24) != 0)
            continue;
        const char *hex = strrchr(line, ' ') + 1;
        for (unsigned k = 0; hex[2 * k] && k < NJ_TLS_SECRET_BYTES_MAX; k++) {
            unsigned byte;
            sscanf(&hex[2 * k], "%2x", &byte);
            client_of(ssl)->secret[i][k] = (uint8_t)byte;
        }
    }
}

static inline int keep_session(SSL *ssl, SSL_SESSION *session)
{
    SSL_SESSION_free(client_of(ssl)->session);
    client_of(ssl)->session = session;
    return 1;
}

static inline void client_open(struct client *c)
{
    static const uint8_t h2[] = "\x08http/1.1\x02h2";

    memset(c, 0, sizeof *c);
    c->ctx = SSL_CTX_new(TLS_client_method());
    SSL_CTX_set_keylog_callback(c->ctx, client_secret);
    SSL_CTX_set_session_cache_mode(c->ctx, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
    SSL_CTX_sess_set_new_cb(c->ctx, keep_session);
    cr_assert_eq(SSL_CTX_load_verify_file(c->ctx, authority.cert), 1);
    SSL_CTX_set_verify(c->ctx, SSL_VERIFY_PEER, NULL);
    SSL_CTX_set_alpn_protos(c->ctx, h2, sizeof h2 - 1);
}

/* After the settings of c->ctx. */
static inline void client_start(struct client *c)
{
    c->ssl = SSL_new(c->ctx);
    c->in = BIO_new(BIO_s_mem());
    c->out = BIO_new(BIO_s_mem());
    BIO_set_mem_eof_return(c->in, -1);
    SSL_set_bio(c->ssl, c->in, c->out);
    SSL_set_app_data(c->ssl, c);
    SSL_set_connect_state(c->ssl);
}

static inline void client_close(struct client *c)
{
    SSL_SESSION_free(c->session);
    SSL_set_shutdown(c->ssl, SSL_SENT_SHUTDOWN); /* else the session cannot be resumed */
    SSL_free(c->ssl);
    SSL_CTX_free(c->ctx);
    ERR_clear_error();
}

struct meeting {
    struct nj_tls_handshake *h;
    enum nj_tls_handshake_result result;
    uint8_t pending[65536]; /* of the client, not used by the server yet */
    uint32_t n_pending;
    uint8_t alert; /* which the client received; 0: none */
};

static inline void on_client_alert(const SSL *ssl, int where, int value)
{
    if (where == SSL_CB_READ_ALERT)
        ((struct meeting *)SSL_get_ex_data(ssl, 1))->alert = (uint8_t)value;
}

/* The server's turn. */
static inline void serve(struct meeting *m, struct client *c)
{
    const uint8_t *out;
    uint32_t n_used;

    m->result = nj_tls_handshake_input(m->h, m->pending, m->n_pending, &n_used);
    cr_assert_leq(n_used, m->n_pending);
    m->n_pending -= n_used;
    memmove(m->pending, m->pending + n_used, m->n_pending);
    uint32_t n_out = nj_tls_handshake_output(m->h, &out);
    cr_assert_eq(BIO_write(c->in, out, (int)n_out), (int)n_out);
}

/* Moves bytes both ways until neither side goes on. `rng` cuts what the server gets into pieces;
 * NULL: it gets all at once. */
static inline void meet(struct meeting *m, struct nj_tls_server_context *context, struct client *c,
                        struct nj_prng *rng)
{
    memset(m, 0, sizeof *m);
    m->h = nj_tls_handshake_new(context);
    m->result = NJ_TLS_HANDSHAKE_MORE;
    SSL_set_ex_data(c->ssl, 1, m);
    SSL_set_info_callback(c->ssl, on_client_alert);
    for (bool moved = true; moved;) {
        uint8_t bytes[512];
        int before = BIO_pending(c->in);
        SSL_do_handshake(c->ssl);
        SSL_read(c->ssl, bytes, sizeof bytes); /* tickets */
        moved = BIO_pending(c->in) != before;
        uint32_t room = sizeof m->pending - m->n_pending;
        int n = BIO_read(c->out, m->pending + m->n_pending,
                         (int)(rng ? 1 + nj_prng_below(rng, 40) : room));
        if (n > 0) {
            m->n_pending += (uint32_t)n;
            moved = true;
        }
        if (m->result == NJ_TLS_HANDSHAKE_MORE)
            serve(m, c);
    }
}

static inline void leave(struct meeting *m)
{
    nj_tls_handshake_free(m->h);
}

static inline struct nj_tls_server_context *context_with(const struct nj_tls_identity_files *files,
                                                         uint32_t n)
{
    const struct nj_tls_server_config config = {
        .identities = files, .n_identities = n, .tickets = &tickets};
    struct nj_tls_server_context *context = nj_tls_server_context_new(&config, why, sizeof why);

    cr_assert(context, "%s", why);
    return context;
}

static inline struct nj_tls_server_context *ecdsa_context(void)
{
    const struct nj_tls_identity_files files = {ecdsa.cert, ecdsa.key};
    return context_with(&files, 1);
}

/* ---- failures ---- */

static inline const char *failure_name(enum nj_tls_failure f)
{
    static const char *const name[NJ_TLS_N_FAILURES] = {
        [NJ_TLS_FAIL_NONE] = "none",
        [NJ_TLS_FAIL_VERSION] = "version",
        [NJ_TLS_FAIL_NEGOTIATION] = "negotiation",
        [NJ_TLS_FAIL_ALPN] = "alpn",
        [NJ_TLS_FAIL_CLIENT_CERT] = "client_cert",
        [NJ_TLS_FAIL_ALERT] = "alert",
        [NJ_TLS_FAIL_MESSAGE] = "message",
        [NJ_TLS_FAIL_MEMORY] = "memory",
    };

    return f < NJ_TLS_N_FAILURES ? name[f] : "unknown";
}

/* ---- resumption ---- */

/* `fragment`: the max_fragment_length that the client asks for, TLSEXT_max_fragment_length_*. */
static inline bool resumes_with(struct nj_tls_server_context *context, SSL_SESSION **session,
                                uint8_t fragment)
{
    struct client c;
    struct meeting m;

    client_open(&c);
    SSL_CTX_set_tlsext_max_fragment_length(c.ctx, fragment);
    client_start(&c);
    if (*session)
        SSL_set_session(c.ssl, *session);
    meet(&m, context, &c, NULL);
    cr_assert_eq(m.result, NJ_TLS_HANDSHAKE_DONE, "%s, alert %u, client: %s",
                 failure_name(nj_tls_handshake_failure(m.h)), m.alert,
                 ERR_reason_error_string(ERR_peek_last_error()));
    bool resumed = nj_tls_handshake_info(m.h)->resumed;
    cr_assert_eq(resumed, SSL_session_reused(c.ssl));
    cr_assert(c.session);
    SSL_SESSION_free(*session);
    *session = c.session;
    c.session = NULL;
    leave(&m);
    client_close(&c);
    return resumed;
}

static inline bool resumes(struct nj_tls_server_context *context, SSL_SESSION **session)
{
    return resumes_with(context, session, TLSEXT_max_fragment_length_DISABLED);
}
