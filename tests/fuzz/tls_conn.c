/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fuzz target: bytes of a client on a TLS port, through TCP, handshake, records and HTTP/2 of a
 * whole shard. Commands of one byte follow each other: bytes as they are, what OpenSSL's client
 * wants to send (all of it, cut, changed, twice), requests, KeyUpdate, time, a client that leaves,
 * slow workers. The rig checks bounds, sums of counters, and that all objects were returned. No key
 * seals two records with the same number.
 */
#define RIG_GOT_MAX (1u << 20)
#include "support/shard_rig.h"

#include "support/nonce_check.h"
#include "support/tls_peer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes);

enum {
    RAW,
    SEND,
    SEND_CUT,
    SEND_CHANGED,
    SEND_TWICE,
    GET,
    KEY_UPDATE,
    TIME,
    LEAVE,
    SLOW,
    COMMANDS
};

static struct tls_rig *t; /* kept, since a certificate takes milliseconds */

struct fuzz {
    const uint8_t *data;
    size_t n_bytes;
    uint32_t stream;
};

static uint8_t take(struct fuzz *f)
{
    if (f->n_bytes == 0)
        return 0;
    f->n_bytes--;
    return *f->data++;
}

static void send_bytes(struct tls_peer *c, const uint8_t *p, uint32_t n)
{
    for (uint32_t at = 0; at < n; at += 1400) {
        rig_send(t->r, c->p, p + at, nj_min_u32(n - at, 1400));
        rig_settle(t->r);
    }
}

/* Sends OpenSSL's output in a way of the command. */
static void send_output(struct fuzz *f, struct tls_peer *c, uint32_t command)
{
    static uint8_t bytes[1u << 16];
    int n = BIO_read(c->out, bytes, sizeof bytes);

    if (n <= 0)
        return;
    if (command == SEND_CHANGED)
        bytes[(take(f) << 8 | take(f)) % n] ^= (uint8_t)(1u << take(f) % 8);
    if (command == SEND_CUT)
        n = n * take(f) / 256;
    send_bytes(c, bytes, (uint32_t)n);
    if (command == SEND_TWICE)
        send_bytes(c, bytes, (uint32_t)n);
}

static void send_raw(struct fuzz *f, struct tls_peer *c)
{
    uint32_t n = take(f);

    n = (uint32_t)(f->n_bytes < n ? f->n_bytes : n);
    send_bytes(c, f->data, n);
    f->data += n;
    f->n_bytes -= n;
}

/* Preface and SETTINGS, with windows that /big fills, so that the shard comes to rest. */
static uint32_t hello_of(uint8_t *out)
{
    static const uint8_t settings[] = {0, 4, 0, 6, 0, 0}, window[] = {0, 5, 0, 1};

    memcpy(out, RIG_PREFACE, RIG_PREFACE_BYTES);
    uint32_t n = RIG_PREFACE_BYTES;
    n += rig_h2(out + n, 4, 0, 0, settings, sizeof settings);   /* 384 KiB */
    return n + rig_h2(out + n, 8, 0, 0, window, sizeof window); /* the same in all */
}

static void ask(struct fuzz *f, struct tls_peer *c)
{
    static const char *const paths[] = {"/index.html", "/whole", "/none", "/big"};
    uint8_t hello[128];

    if (!SSL_is_init_finished(c->ssl) || c->failed || c->closed)
        return;
    if (f->stream == 1)
        SSL_write(c->ssl, hello, (int)hello_of(hello));
    uint8_t get[256];
    SSL_write(c->ssl, get, (int)rig_h2_get(get, f->stream, paths[take(f) % 4]));
    f->stream += 2;
}

static void obey(struct fuzz *f, struct tls_peer *c)
{
    uint32_t command = take(f) % COMMANDS;

    switch (command) {
    case RAW:
        send_raw(f, c);
        break;
    case GET:
        ask(f, c);
        break;
    case KEY_UPDATE:
        if (SSL_is_init_finished(c->ssl))
            SSL_key_update(c->ssl, take(f) & 1);
        break;
    case TIME:
        rig_run(t->r, take(f) * 50 * NJ_MS);
        break;
    case LEAVE:
        if (take(f) & 1)
            rig_fin(t->r, c->p);
        else
            rig_seg(t->r, c->p, c->p->snd_nxt, NJ_TCP_RST, NULL, 0);
        break;
    case SLOW:
        t->slow = !t->slow;
        break;
    default:
        send_output(f, c, command);
    }
    rig_settle(t->r);
    if (c->p->n_got <= RIG_GOT_MAX && !c->failed)
        tls_peer_read(c);
}

static void stop(void)
{
    tls_rig_free_stopped(t);
    nj_test_nonces_free();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
    struct fuzz f = {.data = data, .n_bytes = n_bytes, .stream = 1};

    if (!t) {
        t = tls_rig_new(4096, 4096);
        NJ_CHECK(atexit(stop) == 0);
    } else {
        tls_rig_start(t);
    }
    struct tls_peer *c = tls_peer_new(t, (uint16_t)(1000 + take(&f)));
    for (uint32_t i = 0; f.n_bytes > 0 && i < 64 && c->p->n_got < RIG_GOT_MAX / 2; i++)
        obey(&f, c);
    t->slow = false;
    tls_peer_free(c);
    tls_rig_stop(t);
    NJ_CHECK(!nj_test_nonce_was_reused());
    nj_test_nonces_forget();
    return 0;
}
