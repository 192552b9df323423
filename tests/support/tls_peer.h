/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A shard of shard_rig.h that serves TLS on RIG_PORT, and clients of OpenSSL on its peers. Workers
 * are an array: a task runs when the shard polls, unless tls_rig.slow. Include shard_rig.h first.
 */
#pragma once

#include <openssl/err.h>
#include <openssl/ssl.h>

#include "support/shard_rig.h"
#include "support/tls_certs.h"
#include "tls/server_context.h"

#define TLS_TASKS_MAX 256u

struct tls_rig {
    struct rig *r;
    char folder[32];
    struct test_cert cert;
    struct nj_tls_ticket_keys tickets;
    struct nj_tls_current_context current;
    SSL_CTX *client;
    bool slow, full;
    bool clear; /* RIG_PORT serves cleartext */
    uint32_t n_rx_mbufs, n_tx_mbufs;
    uint32_t conns_max, held_max;   /* of the shard; 0: the defaults of the rig */
    const struct nj_routes *routes; /* of the shard, none OS_BLOCKING; NULL: none */
    const struct nj_policy *policy; /* of the shard; NULL: none */
    struct nj_access_ops access;    /* of the shard */
    bool proxied;                   /* connections begin with a PROXY header */
    uint32_t n_tasks, n_run;
    struct nj_task *task[TLS_TASKS_MAX];
};

/* A client. Plaintext that came is at `got`. */
struct tls_peer {
    struct rig_peer *p;
    SSL *ssl;
    BIO *in, *out;   /* owned by ssl */
    uint64_t n_read; /* bytes of p->got that OpenSSL has */
    bool failed, closed;
    uint32_t n_got;
    uint8_t got[RIG_GOT_MAX];
};

static inline bool tls_rig_submit(void *ctx, struct nj_task *task)
{
    struct tls_rig *t = ctx;

    if (t->full || t->n_tasks == TLS_TASKS_MAX)
        return false;
    t->task[t->n_tasks++] = task;
    return true;
}

static inline uint32_t tls_rig_poll(void *ctx, struct nj_task **tasks, uint32_t n)
{
    struct tls_rig *t = ctx;
    uint32_t n_done = t->slow ? 0 : n < t->n_tasks ? n : t->n_tasks;

    for (uint32_t i = 0; i < n_done; i++) {
        t->task[i]->ops->run(t->task[i]);
        tasks[i] = t->task[i];
    }
    t->n_run += n_done;
    t->n_tasks -= n_done;
    memmove(t->task, t->task + n_done, t->n_tasks * sizeof t->task[0]);
    return n_done;
}

static inline void tls_rig_flush(void *ctx)
{
}

/* Starts the shard; tls_rig_stop() ends it. */
static inline void tls_rig_start(struct tls_rig *t)
{
    t->r = rig_alloc(t->n_rx_mbufs, t->n_tx_mbufs);
    struct nj_shard_config s = rig_config(t->r);
    s.listeners.at[0] =
        (struct nj_listener){.port = RIG_PORT, .is_tls = !t->clear, .has_proxy = t->proxied};
    s.conns.tls = &t->current;
    s.conns.preface_timeout = 10 * NJ_SEC;
    s.conns_max = t->conns_max ? t->conns_max : s.conns_max;
    s.held_max = t->held_max;
    s.conns.routes = t->routes;
    s.conns.policy = t->policy;
    s.conns.access = t->access;
    s.conns.ops.tls_workers = (struct nj_worker_ops){
        .ctx = t, .submit = tls_rig_submit, .poll = tls_rig_poll, .flush = tls_rig_flush};
    rig_new_with(t->r, &s);
}

static inline void tls_rig_stop(struct tls_rig *t)
{
    t->slow = false;
    rig_free(t->r);
    NJ_CHECK(t->n_tasks == 0);
}

static inline struct nj_tls_server_context *tls_rig_context(struct tls_rig *t, bool http1)
{
    const struct nj_tls_identity_files files = {t->cert.cert, t->cert.key};
    const struct nj_tls_server_config config = {
        .identities = &files, .n_identities = 1, .tickets = &t->tickets, .http1 = http1};
    char why[256];
    struct nj_tls_server_context *c = nj_tls_server_context_new(&config, why, sizeof why);

    NJ_CHECK(c);
    return c;
}

/* Handshakes that begin after this agree on HTTP/1.1 with clients that do not offer h2. */
static inline void tls_rig_permit_http1(struct tls_rig *t)
{
    nj_tls_current_context_replace(&t->current, tls_rig_context(t, true));
}

/* As rig_new(), with numbers of mbufs. The shard does not run yet: see tls_rig_start(). */
static inline struct tls_rig *tls_rig_alloc(uint32_t n_rx_mbufs, uint32_t n_tx_mbufs)
{
    static const uint8_t h2[] = {2, 'h', '2'}, key[sizeof(struct nj_tls_ticket_key)] = {1, 2, 3};
    struct tls_rig *t = calloc(1, sizeof *t);

    strcpy(t->folder, "/tmp/nj-tls-XXXXXX");
    NJ_CHECK(mkdtemp(t->folder));
    make_cert(&t->cert, t->folder, "server", "a.test", false, NULL);
    nj_tls_ticket_keys_init(&t->tickets, key);
    nj_tls_current_context_init(&t->current, tls_rig_context(t, false));
    t->client = SSL_CTX_new(TLS_client_method());
    NJ_CHECK(SSL_CTX_set_alpn_protos(t->client, h2, sizeof h2) == 0);
    t->n_rx_mbufs = n_rx_mbufs;
    t->n_tx_mbufs = n_tx_mbufs;
    return t;
}

static inline struct tls_rig *tls_rig_new(uint32_t n_rx_mbufs, uint32_t n_tx_mbufs)
{
    struct tls_rig *t = tls_rig_alloc(n_rx_mbufs, n_tx_mbufs);
    tls_rig_start(t);
    return t;
}

/* After tls_rig_stop(). */
static inline void tls_rig_free_stopped(struct tls_rig *t)
{
    nj_tls_current_context_fini(&t->current);
    nj_tls_ticket_keys_wipe(&t->tickets);
    SSL_CTX_free(t->client);
    free_cert(&t->cert);
    rmdir(t->folder);
    free(t);
}

static inline void tls_rig_free(struct tls_rig *t)
{
    tls_rig_stop(t);
    tls_rig_free_stopped(t);
}

/* Sends what OpenSSL has written, in segments of at most `n_segment` bytes. */
static inline void tls_peer_send(struct tls_rig *t, struct tls_peer *c, uint32_t n_segment)
{
    uint8_t bytes[1400];
    int n;

    while ((n = BIO_read(c->out, bytes, (int)(n_segment < 1400 ? n_segment : 1400))) > 0) {
        NJ_CHECK(rig_send(t->r, c->p, bytes, (uint32_t)n));
        if (t->r->n_in > RIG_IN_MAX / 2)
            rig_settle(t->r);
    }
}

/* Lets OpenSSL read what came. */
static inline void tls_peer_read(struct tls_peer *c)
{
    uint64_t n = c->p->n_got - c->n_read;

    NJ_CHECK(c->p->n_got <= RIG_GOT_MAX);
    if (n > 0)
        NJ_CHECK(BIO_write(c->in, c->p->got + c->n_read, (int)n) == (int)n);
    c->n_read += n;
    ERR_clear_error();
    int result = SSL_is_init_finished(c->ssl) ? 1 : SSL_do_handshake(c->ssl);
    while (result > 0 && c->n_got < RIG_GOT_MAX) {
        result = SSL_read(c->ssl, c->got + c->n_got, (int)(RIG_GOT_MAX - c->n_got));
        c->n_got += result > 0 ? (uint32_t)result : 0;
    }
    int error = SSL_get_error(c->ssl, result);
    c->closed |= error == SSL_ERROR_ZERO_RETURN;
    c->failed |= error == SSL_ERROR_SSL;
}

/* Both sides act until neither has anything to send. */
static inline void tls_peer_pump(struct tls_rig *t, struct tls_peer *c, uint32_t n_segment)
{
    do {
        tls_peer_send(t, c, n_segment);
        rig_settle(t->r);
        tls_peer_read(c);
    } while (BIO_pending(c->out) > 0);
}

/* A client on a connection, which has sent nothing yet. */
static inline struct tls_peer *tls_peer_new_on(struct tls_rig *t, struct rig_peer *p)
{
    struct tls_peer *c = calloc(1, sizeof *c);

    c->p = p;
    c->ssl = SSL_new(t->client);
    c->in = BIO_new(BIO_s_mem());
    c->out = BIO_new(BIO_s_mem());
    BIO_set_mem_eof_return(c->in, -1);
    SSL_set_bio(c->ssl, c->in, c->out);
    SSL_set_connect_state(c->ssl);
    SSL_do_handshake(c->ssl); /* writes the ClientHello */
    return c;
}

static inline struct tls_peer *tls_peer_new(struct tls_rig *t, uint16_t port)
{
    return tls_peer_new_on(t, rig_connect(t->r, port));
}

static inline void tls_peer_free(struct tls_peer *c)
{
    SSL_free(c->ssl);
    free(c);
}

static inline void tls_peer_write(struct tls_peer *c, const void *bytes, uint32_t n)
{
    NJ_CHECK(SSL_write(c->ssl, bytes, (int)n) == (int)n);
}

/* A client that has finished its handshake and sent the preface of HTTP/2. */
static inline struct tls_peer *tls_peer_connect_h2(struct tls_rig *t, uint16_t port)
{
    struct tls_peer *c = tls_peer_new(t, port);
    uint8_t hello[128];

    tls_peer_pump(t, c, 1400);
    NJ_CHECK(SSL_is_init_finished(c->ssl));
    tls_peer_write(c, hello, rig_h2_hello(hello));
    tls_peer_pump(t, c, 1400);
    return c;
}

static inline void tls_peer_get(struct tls_peer *c, uint32_t stream, const char *path)
{
    uint8_t get[256];
    tls_peer_write(c, get, rig_h2_get(get, stream, path));
}

/* Bytes of DATA frames of a file of rig_byte(), and whether they are right. */
static inline uint32_t tls_peer_body(const struct tls_peer *c, bool *good)
{
    uint32_t n_body = 0;

    *good = true;
    for (uint32_t at = 0; at + 9 <= c->n_got;) {
        const uint8_t *f = c->got + at;
        uint32_t n = (uint32_t)f[0] << 16 | (uint32_t)f[1] << 8 | f[2];
        if (at + 9 + n > c->n_got)
            break;
        for (uint32_t i = 0; f[3] == 0 && i < n; i++)
            *good &= f[9 + i] == rig_byte(n_body + i);
        n_body += f[3] == 0 ? n : 0;
        at += 9 + n;
    }
    return n_body;
}
