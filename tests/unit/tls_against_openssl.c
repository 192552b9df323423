/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lib/tls against OpenSSL's own TLS: after a handshake of its client with its server, a session
 * with the server's secrets takes the server's place. Handshakes are by a pre-shared key, so that
 * no certificate is needed.
 */
#include "tls_rig.h"

#include <openssl/err.h>
#include <openssl/ssl.h>

#include "tls/session.h"

#define WIRE_BYTES (1u << 20)

struct wire {
    uint8_t bytes[WIRE_BYTES];
    uint32_t n;
};

struct pair {
    SSL_CTX *ctx;
    SSL *client, *server;
    uint16_t cipher;
    uint8_t client_secret[48], server_secret[48];
    struct nj_tls_crypto c;
    struct nj_tls_session s;
    struct nj_tls_expanded *expanded;
    struct wire to_server, to_client;
    uint8_t data[WIRE_BYTES]; /* that the session got */
    uint32_t n_data;
    struct nj_tls_input last; /* that was not data */
    nj_ns now;
};

static struct pair *pair; /* for the callbacks, which have no argument of ours */

/* --- the handshake --------------------------------------------------------------------------- */

static SSL_SESSION *psk_session(SSL *ssl)
{
    const uint8_t id[2] = {0x13, (uint8_t)pair->cipher};
    const uint8_t key[48] = "a pre-shared key";
    SSL_SESSION *s = SSL_SESSION_new();

    cr_assert(SSL_SESSION_set1_master_key(s, key, nj_tls_secret_bytes(pair->cipher)));
    cr_assert(SSL_SESSION_set_cipher(s, SSL_CIPHER_find(ssl, id)));
    cr_assert(SSL_SESSION_set_protocol_version(s, TLS1_3_VERSION));
    return s;
}

static int psk_use(SSL *ssl, const EVP_MD *md, const unsigned char **id, size_t *n_id,
                   SSL_SESSION **session)
{
    *id = (const unsigned char *)"id";
    *n_id = 2;
    *session = psk_session(ssl);
    return 1;
}

static int psk_find(SSL *ssl, const unsigned char *id, size_t n_id, SSL_SESSION **session)
{
    *session = psk_session(ssl);
    return 1;
}

/* Lines of NSS's key log: label, the client's random number, secret. */
static void keylog(const SSL *ssl, const char *line)
{
    const char *secret = strrchr(line, ' ') + 1;

    if (strncmp(line, "CLIENT_TRAFFIC_SECRET_0 ", 24) == 0)
        rig_hex(pair->client_secret, 48, secret);
    if (strncmp(line, "SERVER_TRAFFIC_SECRET_0 ", 24) == 0)
        rig_hex(pair->server_secret, 48, secret);
}

static SSL *ssl_new(bool is_server)
{
    SSL *ssl = SSL_new(pair->ctx);

    cr_assert(ssl);
    SSL_set_bio(ssl, BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()));
    if (is_server)
        SSL_set_accept_state(ssl);
    else
        SSL_set_connect_state(ssl);
    return ssl;
}

static void pull(SSL *ssl, struct wire *w)
{
    int n = BIO_read(SSL_get_wbio(ssl), w->bytes + w->n, (int)(WIRE_BYTES - w->n));

    w->n += n > 0 ? (uint32_t)n : 0;
}

static void push(SSL *ssl, struct wire *w)
{
    if (w->n > 0)
        cr_assert_eq(BIO_write(SSL_get_rbio(ssl), w->bytes, (int)w->n), (int)w->n);
    w->n = 0;
}

static uint32_t count_records(const struct wire *w)
{
    uint32_t n = 0;

    for (uint32_t at = 0; at < w->n; n++) {
        int size = nj_tls_record_size(w->bytes + at, w->n - at);
        cr_assert_gt(size, 0);
        at += (uint32_t)size;
    }
    return n;
}

/* Returns how many records of tickets the server has sent with its key for application data. */
static uint32_t shake_hands(void)
{
    uint32_t n_tickets = 0;

    for (bool done = false; !done;) {
        SSL_do_handshake(pair->client);
        pull(pair->client, &pair->to_server);
        push(pair->server, &pair->to_server);
        done = SSL_do_handshake(pair->server) == 1;
        pull(pair->server, &pair->to_client);
        if (done)
            n_tickets = count_records(&pair->to_client);
        push(pair->client, &pair->to_client);
    }
    cr_assert_eq(SSL_do_handshake(pair->client), 1);
    return n_tickets;
}

static void pair_new(enum nj_tls_cipher cipher, enum nj_tls_engine engine, uint32_t n_tickets)
{
    static const char *const names[] = {"TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384",
                                        "TLS_CHACHA20_POLY1305_SHA256"};
    struct nj_tls_keys read, write;

    pair = calloc(1, sizeof *pair);
    pair->cipher = (uint16_t)cipher;
    pair->ctx = SSL_CTX_new(TLS_method());
    cr_assert(SSL_CTX_set_min_proto_version(pair->ctx, TLS1_3_VERSION));
    cr_assert(SSL_CTX_set_ciphersuites(pair->ctx, names[cipher - NJ_TLS_AES_128_GCM_SHA256]));
    SSL_CTX_set_psk_use_session_callback(pair->ctx, psk_use);
    SSL_CTX_set_psk_find_session_callback(pair->ctx, psk_find);
    SSL_CTX_set_keylog_callback(pair->ctx, keylog);
    SSL_CTX_set_num_tickets(pair->ctx, n_tickets);
    pair->client = ssl_new(false);
    pair->server = ssl_new(true);
    uint32_t n_sent = shake_hands();
    cr_assert_eq(n_sent > 0, n_tickets > 0);
    pair->c.aead = nj_tls_aead_new(engine);
    pair->c.kdf = nj_tls_kdf_new();
    pair->expanded = rig_expanded(pair->c.aead);
    cr_assert(nj_tls_keys_derive(&read, pair->c.kdf, cipher, pair->client_secret));
    cr_assert(nj_tls_keys_derive(&write, pair->c.kdf, cipher, pair->server_secret));
    write.record_number = n_sent;
    nj_tls_session_init(&pair->s, &read, &write, NJ_TLS_RECORD_SIZE_LIMIT_MAX);
}

static void pair_free(void)
{
    SSL_free(pair->client);
    SSL_free(pair->server);
    SSL_CTX_free(pair->ctx);
    free(pair->expanded);
    nj_tls_kdf_free(pair->c.kdf);
    nj_tls_aead_free(pair->c.aead);
    free(pair);
}

/* --- data ------------------------------------------------------------------------------------ */

/* All records of the client to the session. */
static void deliver(void)
{
    static uint8_t scratch[NJ_TLS_OPEN_ROOM];
    uint32_t at = 0;

    pull(pair->client, &pair->to_server);
    for (int size; at < pair->to_server.n; at += (uint32_t)size) {
        size = nj_tls_record_size(pair->to_server.bytes + at, pair->to_server.n - at);
        cr_assert_gt(size, 0);
        const struct nj_tls_src src = {pair->to_server.bytes + at, (uint32_t)size};
        struct nj_tls_input in = nj_tls_session_input(&pair->s, &pair->c, pair->expanded, &src, 1,
                                                      scratch, sizeof scratch, pair->now);
        cr_assert_neq(in.kind, NJ_TLS_IN_ERROR, "alert %u", in.alert);
        if (in.kind == NJ_TLS_IN_DATA) {
            memcpy(pair->data + pair->n_data, in.data, in.n_bytes);
            pair->n_data += in.n_bytes;
        } else {
            pair->last = in;
        }
    }
    pair->to_server.n = 0;
}

static void client_sends(const uint8_t *data, uint32_t n)
{
    pair->n_data = 0;
    cr_assert_eq(SSL_write(pair->client, data, (int)n), (int)n);
    deliver();
    cr_assert_eq(pair->n_data, n);
    cr_assert_eq(memcmp(pair->data, data, n), 0);
}

static void session_sends(const uint8_t *data, uint32_t n, uint32_t record_max)
{
    static uint8_t got[WIRE_BYTES];
    const struct nj_tls_src src = {data, n};
    const struct nj_tls_dst dst = {pair->to_client.bytes, WIRE_BYTES};
    int n_out =
        nj_tls_session_seal(&pair->s, &pair->c, pair->expanded, record_max, &src, 1, &dst, 1);
    uint32_t n_got = 0;

    cr_assert_gt(n_out, 0);
    pair->to_client.n = (uint32_t)n_out;
    push(pair->client, &pair->to_client);
    for (int n_here; n_got < n; n_got += (uint32_t)n_here) {
        n_here = SSL_read(pair->client, got + n_got, (int)(n - n_got));
        cr_assert_gt(n_here, 0);
    }
    cr_assert_eq(memcmp(got, data, n), 0);
}

static void session_updates_key(void)
{
    const struct nj_tls_dst dst = {pair->to_client.bytes, WIRE_BYTES};

    pair->to_client.n =
        (uint32_t)nj_tls_session_write_key_update(&pair->s, &pair->c, pair->expanded, &dst, 1);
    cr_assert_eq(pair->to_client.n, NJ_TLS_KEY_UPDATE_RECORD_BYTES);
    push(pair->client, &pair->to_client);
}

static void expect_closed(void)
{
    const struct nj_tls_dst dst = {pair->to_client.bytes, WIRE_BYTES};
    uint8_t byte;

    cr_assert_eq(SSL_shutdown(pair->client), 0);
    deliver();
    cr_assert_eq(pair->last.kind, NJ_TLS_IN_CLOSE_NOTIFY);
    pair->to_client.n = (uint32_t)nj_tls_session_write_alert(&pair->s, &pair->c, pair->expanded,
                                                             NJ_TLS_CLOSE_NOTIFY, &dst, 1);
    push(pair->client, &pair->to_client);
    int n = SSL_read(pair->client, &byte, 1);
    cr_assert_eq(SSL_get_error(pair->client, n), SSL_ERROR_ZERO_RETURN);
}

static void talk(struct nj_prng *r)
{
    static uint8_t data[200000];

    rig_fill(r, data, sizeof data);
    for (uint32_t i = 0; i < 60; i++) {
        uint32_t n = 1 + rig_length(r, i % 10 ? 20000 : sizeof data - 1);
        switch (nj_prng_below(r, 6)) {
        case 0:
        case 1:
            client_sends(data, n);
            break;
        case 2:
            cr_assert(SSL_key_update(pair->client, nj_prng_below(r, 2)
                                                       ? SSL_KEY_UPDATE_REQUESTED
                                                       : SSL_KEY_UPDATE_NOT_REQUESTED));
            client_sends(data, n);
            cr_assert_eq(pair->last.kind, NJ_TLS_IN_KEY_UPDATE);
            pair->now += NJ_TLS_KEY_UPDATE_TIME;
            break;
        case 3:
            session_updates_key();
            break;
        default:
            session_sends(data, n, nj_prng_below(r, 2) ? 16384 : 1 + nj_prng_below(r, 3000));
        }
    }
    session_sends(data, 1, 1);
}

Test(tls_against_openssl, talk)
{
    struct nj_prng r = rig_prng(0x055);

    for (uint32_t i = 0; i < 3 * NJ_TLS_CIPHERS; i++) {
        pair_new(rig_ciphers[i % NJ_TLS_CIPHERS], i % 2 ? NJ_TLS_ENGINE_EVP : NJ_TLS_ENGINE_AUTO,
                 i % 3);
        if (i % 4 == 3) /* padded records */
            cr_assert(SSL_set_block_padding(pair->client, 512));
        talk(&r);
        expect_closed();
        pair_free();
    }
}

/* Our alert is what the client sees, and the client's is what we see. */
Test(tls_against_openssl, alerts)
{
    pair_new(NJ_TLS_AES_128_GCM_SHA256, NJ_TLS_ENGINE_AUTO, 0);
    const struct nj_tls_dst dst = {pair->to_client.bytes, WIRE_BYTES};
    uint8_t byte;

    pair->to_client.n = (uint32_t)nj_tls_session_write_alert(&pair->s, &pair->c, pair->expanded,
                                                             NJ_TLS_INTERNAL_ERROR, &dst, 1);
    push(pair->client, &pair->to_client);
    cr_expect_leq(SSL_read(pair->client, &byte, 1), 0);
    cr_expect_eq(ERR_GET_REASON(ERR_get_error()), SSL_R_TLSV1_ALERT_INTERNAL_ERROR);
    pair_free();

    pair_new(NJ_TLS_AES_128_GCM_SHA256, NJ_TLS_ENGINE_AUTO, 0);
    memcpy(pair->to_client.bytes, "\x17\3\3\0\x11not authentic at", 22);
    pair->to_client.n = 22;
    push(pair->client, &pair->to_client);
    cr_expect_leq(SSL_read(pair->client, &byte, 1), 0);
    deliver();
    cr_expect(pair->last.kind == NJ_TLS_IN_PEER_ALERT && pair->last.alert == NJ_TLS_BAD_RECORD_MAC);
    pair_free();
}
