/* SPDX-License-Identifier: BSD-3-Clause */
#define OPENSSL_SUPPRESS_DEPRECATED  /* RAND_set_rand_method(), for which providers are the heirs  \
                                      */
#include "tls.h"

#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include <openssl/rand.h>

#include "base/assert.h"
#include "sim.h"
#include "support/nonce_check.h"
#include "support/tls_certs.h"
#include "tls/server_context.h"

#define EPOCH 1700000000 /* UNIX time at virtual time 0 */

struct sim_tls {
    SSL_CTX *client;
    struct nj_tls_ticket_keys tickets;
    struct nj_tls_current_context current;
    SSL_SESSION *session; /* the latest ticket of this seed, or NULL */
};

/* --- what OpenSSL takes from its environment ------------------------------------------------ */

static struct nj_prng randomness;
static const nj_ns *clock_of_sim; /* NULL: no seed has begun */

static int random_bytes(unsigned char *out, int n)
{
    for (int i = 0; i < n; i++)
        out[i] = (unsigned char)nj_prng_next(&randomness);
    return 1;
}

static int random_status(void)
{
    return 1;
}

/* These take the places of libc's, also for OpenSSL: it writes the time into certificates and
 * tickets. */
__attribute__((visibility("default"))) time_t time(time_t *out)
{
    time_t t = EPOCH + (clock_of_sim ? (time_t)(*clock_of_sim / NJ_SEC) : 0);

    if (out)
        *out = t;
    return t;
}

__attribute__((visibility("default"))) int gettimeofday(struct timeval *out, void *zone)
{
    *out = (struct timeval){.tv_sec = time(NULL)};
    (void)zone;
    return 0;
}

/* --- contexts ------------------------------------------------------------------------------- */

static int on_ticket(SSL *ssl, SSL_SESSION *session)
{
    struct sim_tls *t = SSL_CTX_get_app_data(SSL_get_SSL_CTX(ssl));

    SSL_SESSION_free(t->session);
    t->session = session;
    return 1; /* it is kept */
}

static struct nj_tls_server_context *server_context(struct sim_tls *t)
{
    char folder[] = "/tmp/nj-sim-XXXXXX", why[256];
    struct test_cert cert;

    NJ_CHECK(mkdtemp(folder));
    make_cert(&cert, folder, "server", "sim", false, NULL);
    const struct nj_tls_identity_files files = {cert.cert, cert.key};
    const struct nj_tls_server_config config = {
        .identities = &files, .n_identities = 1, .tickets = &t->tickets, .http1 = true};
    struct nj_tls_server_context *c = nj_tls_server_context_new(&config, why, sizeof why);
    NJ_CHECK(c);
    free_cert(&cert);
    rmdir(folder);
    return c;
}

struct sim_tls *nj_sim_tls_new(void)
{
    static const uint8_t key[sizeof(struct nj_tls_ticket_key)] = {1, 2, 3};
    static const RAND_METHOD from_seed = {
        .bytes = random_bytes, .pseudorand = random_bytes, .status = random_status};
    struct sim_tls *t = calloc(1, sizeof *t);

    NJ_CHECK(t && RAND_set_rand_method(&from_seed) == 1);
    nj_prng_init(&randomness, 1);
    nj_tls_ticket_keys_init(&t->tickets, key);
    nj_tls_current_context_init(&t->current, server_context(t));
    t->client = SSL_CTX_new(TLS_client_method());
    NJ_CHECK(t->client);
    SSL_CTX_set_app_data(t->client, t);
    SSL_CTX_set_session_cache_mode(t->client,
                                   SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL_STORE);
    SSL_CTX_sess_set_new_cb(t->client, on_ticket);
    return t;
}

void nj_sim_tls_free(struct sim_tls *t)
{
    clock_of_sim = NULL;
    nj_tls_current_context_fini(&t->current);
    nj_tls_ticket_keys_wipe(&t->tickets);
    SSL_SESSION_free(t->session);
    SSL_CTX_free(t->client);
    free(t);
    nj_test_nonces_free();
}

struct nj_tls_current_context *nj_sim_tls_context(struct sim_tls *t)
{
    return &t->current;
}

SSL *nj_sim_tls_client(struct sim_tls *t, bool resumes)
{
    SSL *ssl = SSL_new(t->client);

    NJ_CHECK(ssl);
    if (resumes && t->session)
        NJ_CHECK(SSL_set_session(ssl, t->session) == 1);
    return ssl;
}

/* --- a seed --------------------------------------------------------------------------------- */

void nj_sim_tls_begin(struct sim *sim)
{
    nj_test_nonces_forget();
    if (!sim->mix.tls.on)
        return;
    SSL_SESSION_free(sim->tls->session);
    sim->tls->session = NULL;
    nj_prng_init(&randomness, sim->seed ^ 0x7a4d);
    clock_of_sim = &sim->now;
}

void nj_sim_tls_check(struct sim *sim)
{
    if (nj_test_nonce_was_reused())
        nj_sim_fail(sim, "two records were sealed with the same key and number");
}
