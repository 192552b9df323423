/* SPDX-License-Identifier: BSD-3-Clause */
/* A client's TLS (RFC 8446), by OpenSSL on bytes in memory, between TCP and HTTP. */
#include <openssl/err.h>

#include "base/assert.h"
#include "telem/counters.h"
#include "sim.h"
#include "tls.h"

#define KEY_UPDATES_MAX 20u          /* of a connection; the server refuses 33 at once */
#define PREFACE_DUE     (9 * NJ_SEC) /* the server waits 10 s for the preface of HTTP/2 */

static const char *const suites[] = {NULL, "TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384",
                                     "TLS_CHACHA20_POLY1305_SHA256"};

/* Uses a generator of its own, so that what the seed draws for HTTP is the same without TLS. */
void nj_sim_tls_plan(struct sim_conn *c)
{
    struct sim_tls_conn *t = &c->tls;
    struct nj_prng *p = &t->prng;

    nj_prng_init(p, c->sim->seed ^ (0x715c11e7 + (uint64_t)c->index));
    t->on = nj_sim_http(c) && nj_prng_below(p, 5) > 0;
    t->suite = suites[nj_prng_below(p, 4)];
    t->retries = nj_prng_below(p, 16) == 0;
    t->resumes = nj_prng_below(p, 2);
    t->says_end = nj_prng_below(p, 3) > 0;
    t->pads = nj_prng_below(p, 4) == 0;
    t->record_max = nj_prng_below(p, 2) ? 16384 : 512 + nj_prng_below(p, 4000);
    t->update_gap = nj_prng_below(p, 4) ? 1000 + nj_prng_below(p, 100000) : 0;
}

/* A client that offers no protocol gets HTTP/1.1. */
static void offer_protocol(struct sim_conn *c)
{
    static const uint8_t h2[] = {2, 'h', '2'}, http1[] = "\x08http/1.1";

    if (c->kind == SIM_H2)
        NJ_CHECK(SSL_set_alpn_protos(c->tls.ssl, h2, sizeof h2) == 0);
    else if (c->h1.alpn)
        NJ_CHECK(SSL_set_alpn_protos(c->tls.ssl, http1, sizeof http1 - 1) == 0);
}

void nj_sim_tls_open(struct sim_conn *c)
{
    struct sim_tls_conn *t = &c->tls;

    t->opened_at = c->sim->now;
    t->ssl = nj_sim_tls_client(c->sim->tls, t->resumes && !t->suite);
    t->in = BIO_new(BIO_s_mem());
    t->out = BIO_new(BIO_s_mem());
    NJ_CHECK(t->in && t->out);
    BIO_set_mem_eof_return(t->in, -1);
    SSL_set_bio(t->ssl, t->in, t->out);
    SSL_set_connect_state(t->ssl);
    NJ_CHECK(!t->suite || SSL_set_ciphersuites(t->ssl, t->suite) == 1);
    /* The server does not have the first group, and asks for the second. */
    NJ_CHECK(!t->retries || SSL_set1_groups_list(t->ssl, "P-521:P-256") == 1);
    NJ_CHECK(SSL_set_max_send_fragment(t->ssl, t->record_max) == 1);
    NJ_CHECK(!t->pads || SSL_set_block_padding(t->ssl, 256) == 1);
    offer_protocol(c);
    SSL_do_handshake(t->ssl);
}

/* Results below 1 mean that bytes are missing, or the end. */
static void check(struct sim_conn *c, int result)
{
    int error = SSL_get_error(c->tls.ssl, result);

    c->tls.got_end |= error == SSL_ERROR_ZERO_RETURN;
    if (error == SSL_ERROR_SSL || error == SSL_ERROR_SYSCALL)
        nj_sim_fail(c->sim, "conn %u: OpenSSL says: %s", c->index,
                    ERR_reason_error_string(ERR_peek_last_error()));
}

static void update_keys(struct sim_conn *c)
{
    struct sim_tls_conn *t = &c->tls;

    if (t->update_gap == 0 || c->n_read < t->update_at || t->n_updates == KEY_UPDATES_MAX ||
        t->said_end || c->state != SIM_OPEN)
        return;
    t->update_at = c->n_read + 1 + nj_prng_below(&t->prng, t->update_gap);
    t->n_updates++;
    bool asks = nj_prng_below(&t->prng, 2);
    nj_sim_log(c->sim, "conn %u: KeyUpdate%s", c->index, asks ? ", asks for another" : "");
    NJ_CHECK(
        SSL_key_update(t->ssl, asks ? SSL_KEY_UPDATE_REQUESTED : SSL_KEY_UPDATE_NOT_REQUESTED));
    check(c, SSL_do_handshake(t->ssl));
}

void nj_sim_tls_input(struct sim_conn *c, const uint8_t *data, uint32_t n)
{
    struct sim_tls_conn *t = &c->tls;
    uint8_t plain[16384];
    int result = 1;

    ERR_clear_error();
    NJ_CHECK(BIO_write(t->in, data, (int)n) == (int)n);
    if (!c->speaks) {
        result = SSL_do_handshake(t->ssl);
        if (result == 1) {
            nj_sim_log(c->sim, "conn %u: %s%s", c->index, SSL_get_cipher(t->ssl),
                       SSL_session_reused(t->ssl) ? ", resumed" : "");
            c->speaks = true;
            nj_sim_http(c)->open(c);
        }
    }
    while (result > 0 && !c->sim->record.failed) {
        result = SSL_read(t->ssl, plain, sizeof plain);
        if (result > 0)
            nj_sim_http(c)->input(c, plain, (size_t)result);
    }
    check(c, result);
    if (c->speaks && !c->sim->record.failed)
        update_keys(c);
}

uint32_t nj_sim_tls_output(struct sim_conn *c, uint8_t *out, uint32_t n_room, bool may_close)
{
    struct sim_tls_conn *t = &c->tls;
    const uint8_t *data;
    size_t n = 0;

    if (BIO_pending(t->out) == 0 && c->speaks && !t->said_end) {
        n = nj_sim_http(c)->output(c, &data);
        if (n > 0)
            NJ_CHECK(SSL_write(t->ssl, data, (int)n) == (int)n);
        if (n == 0 && may_close && t->says_end) {
            t->said_end = true;
            SSL_shutdown(t->ssl);
        }
    }
    int n_out = BIO_read(t->out, out, (int)n_room);
    return n_out > 0 ? (uint32_t)n_out : 0;
}

static uint64_t count(const struct sim *sim, nj_counter which)
{
    uint64_t n = 0;

    for (uint32_t i = 0; i < SIM_SHARDS; i++)
        n += nj_counter_read(&sim->server.lane[i].shard->counters, which);
    return n;
}

/* Is this an end of the server's that has to be possible? */
static bool is_excused(const struct sim_conn *c)
{
    const struct sim *sim = c->sim;
    bool was_late = !c->heard && sim->now - c->tls.opened_at >= PREFACE_DUE;
    bool was_refused = !c->heard && sim->mix.tls.refuse > 0;
    bool lacked_mbufs = count(sim, NJ_C_tls_no_mbuf) + count(sim, NJ_C_tls_failed_memory) > 0;

    return was_late || was_refused || (sim->mix.tight && lacked_mbufs);
}

bool nj_sim_tls_over(struct sim_conn *c, bool died)
{
    if (is_excused(c))
        return false;
    if (!died && c->heard && !c->tls.got_end)
        nj_sim_fail(c->sim, "conn %u: FIN without close_notify", c->index);
    return true;
}

void nj_sim_tls_fini(struct sim_conn *c)
{
    SSL_free(c->tls.ssl);
    c->tls.ssl = NULL;
}
