/* SPDX-License-Identifier: BSD-3-Clause */
#include "tls.h"

#include <stdlib.h>
#include <string.h>

#include <openssl/err.h>
#include <openssl/ssl.h>

#include "base/types.h"
#include "tls/handshake.h"

struct load_tls {
    SSL_CTX *ctx;
    struct nj_tls_aead *aead;
    struct nj_tls_kdf *kdf;
    const char *alpn, *server_name;
    uint8_t plain[NJ_TLS_OPEN_ROOM];
};

struct load_tls_conn {
    struct load_tls *of;
    SSL *ssl;                 /* until the handshake has ended */
    BIO *in, *out;            /* owned by ssl */
    bool established, closed; /* the peer has sent close_notify */
    const char *fault;
    uint8_t client_secret[NJ_TLS_SECRET_BYTES_MAX], server_secret[NJ_TLS_SECRET_BYTES_MAX];
    struct nj_tls_keys read, write;
    struct nj_tls_expanded *expanded[2]; /* of read, of write */
};

static void on_secret(const SSL *ssl, const char *line)
{
    struct load_tls_conn *c = SSL_get_app_data(ssl);

    nj_tls_read_secret_line(line, "CLIENT_TRAFFIC_SECRET_0", c->client_secret);
    nj_tls_read_secret_line(line, "SERVER_TRAFFIC_SECRET_0", c->server_secret);
}

struct load_tls *load_tls_new(const char *alpn, const char *server_name)
{
    struct load_tls *t = calloc(1, sizeof *t);
    uint32_t n = (uint32_t)strlen(alpn);
    uint8_t protocols[256] = {(uint8_t)n};

    if (!t)
        return NULL;
    t->alpn = alpn;
    t->server_name = server_name;
    memcpy(protocols + 1, alpn, n);
    t->ctx = SSL_CTX_new(TLS_client_method());
    t->aead = nj_tls_aead_new(NJ_TLS_ENGINE_AUTO);
    t->kdf = nj_tls_kdf_new();
    if (!t->ctx || !t->aead || !t->kdf || SSL_CTX_set_alpn_protos(t->ctx, protocols, n + 1) != 0) {
        load_tls_free(t);
        return NULL;
    }
    SSL_CTX_set_min_proto_version(t->ctx, TLS1_3_VERSION);
    SSL_CTX_set_keylog_callback(t->ctx, on_secret);
    return t;
}

void load_tls_free(struct load_tls *t)
{
    if (!t)
        return;
    SSL_CTX_free(t->ctx);
    nj_tls_aead_free(t->aead);
    nj_tls_kdf_free(t->kdf);
    free(t);
}

struct load_tls_conn *load_tls_open(struct load_tls *t)
{
    struct load_tls_conn *c = calloc(1, sizeof *c);
    uint32_t n = nj_tls_expanded_bytes(t->aead);
    uint8_t *expanded = aligned_alloc(NJ_TLS_EXPANDED_ALIGN, 2 * (size_t)n);

    if (!c || !expanded) {
        free(c);
        free(expanded);
        return NULL;
    }
    memset(expanded, 0, 2 * (size_t)n);
    c->of = t;
    c->expanded[0] = (void *)expanded;
    c->expanded[1] = (void *)(expanded + n);
    c->ssl = SSL_new(t->ctx);
    c->in = BIO_new(BIO_s_mem());
    c->out = BIO_new(BIO_s_mem());
    if (!c->ssl || !c->in || !c->out ||
        (t->server_name && SSL_set_tlsext_host_name(c->ssl, t->server_name) != 1)) {
        BIO_free(c->in);
        BIO_free(c->out);
        load_tls_close(c);
        return NULL;
    }
    SSL_set_bio(c->ssl, c->in, c->out);
    SSL_set_app_data(c->ssl, c);
    SSL_set_connect_state(c->ssl);
    SSL_do_handshake(c->ssl); /* writes the ClientHello, and wants to read */
    return c;
}

void load_tls_close(struct load_tls_conn *c)
{
    if (!c)
        return;
    SSL_free(c->ssl);
    free(c->expanded[0]);
    explicit_bzero(c, sizeof *c);
    free(c);
}

bool load_tls_is_established(const struct load_tls_conn *c)
{
    return c->established;
}

bool load_tls_is_closed(const struct load_tls_conn *c)
{
    return c->closed;
}

const char *load_tls_fault(const struct load_tls_conn *c)
{
    return c->fault         ? c->fault
           : c->established ? "a record of TLS that is not valid, or an alert"
                            : "the TLS handshake failed";
}

static const char *other_protocol(const struct load_tls_conn *c)
{
    return strcmp(c->of->alpn, "h2") == 0 ? "the server has no HTTP/2 over TLS (--http1)"
                                          : "the server has no HTTP/1.1 over TLS";
}

/* For a user of the program; NULL: unknown. */
static const char *handshake_fault(const struct load_tls_conn *c, unsigned long error)
{
    switch (ERR_GET_REASON(error)) {
    case SSL_R_TLSV1_ALERT_PROTOCOL_VERSION:
    case SSL_R_UNSUPPORTED_PROTOCOL:
        return "the server has no TLS 1.3";
    case SSL_R_TLSV1_ALERT_NO_APPLICATION_PROTOCOL:
        return other_protocol(c);
    default:
        return ERR_reason_error_string(error);
    }
}

/* A server without ALPN (RFC 7301) speaks HTTP/1.1. */
static bool has_protocol(struct load_tls_conn *c)
{
    const uint8_t *name = NULL;
    unsigned n = 0;

    SSL_get0_alpn_selected(c->ssl, &name, &n);
    if (n == 0)
        return strcmp(c->of->alpn, "http/1.1") == 0;
    return n == strlen(c->of->alpn) && memcmp(name, c->of->alpn, n) == 0;
}

static bool establish(struct load_tls_conn *c)
{
    uint16_t cipher = SSL_CIPHER_get_protocol_id(SSL_get_current_cipher(c->ssl));

    if (!has_protocol(c)) {
        c->fault = other_protocol(c);
        return false;
    }
    c->established = nj_tls_cipher_is_known(cipher) &&
                     nj_tls_keys_derive(&c->read, c->of->kdf, cipher, c->server_secret) &&
                     nj_tls_keys_derive(&c->write, c->of->kdf, cipher, c->client_secret);
    return c->established;
}

bool load_tls_handshake(struct load_tls_conn *c, const struct nj_tls_src *record, uint32_t n_src)
{
    BIO_reset(c->out);
    for (uint32_t i = 0; i < n_src; i++)
        if (BIO_write(c->in, record[i].p, (int)record[i].n_bytes) != (int)record[i].n_bytes)
            return false;
    ERR_clear_error();
    int result = SSL_do_handshake(c->ssl);
    if (result == 1)
        return establish(c);
    if (SSL_get_error(c->ssl, result) == SSL_ERROR_WANT_READ)
        return true;
    c->fault = handshake_fault(c, ERR_peek_error());
    return false;
}

uint32_t load_tls_output(struct load_tls_conn *c, const uint8_t **data)
{
    char *p = NULL;
    long n = BIO_get_mem_data(c->out, &p);

    *data = (const uint8_t *)p;
    return n > 0 ? (uint32_t)n : 0;
}

/* A message behind the handshake: a ticket, or the server changes its key (RFC 8446 4.6). */
static bool read_message(struct load_tls_conn *c, const uint8_t *p, uint32_t n)
{
    enum { KEY_UPDATE = 24 };
    struct nj_tls_keys next;

    if (n == 0 || p[0] != KEY_UPDATE)
        return true;
    if (!nj_tls_keys_derive_next(&next, c->of->kdf, &c->read))
        return false;
    c->read = next;
    return true;
}

int load_tls_read(struct load_tls_conn *c, const struct nj_tls_src *record, uint32_t n_src,
                  const uint8_t **data)
{
    struct load_tls *t = c->of;
    struct nj_tls_opened opened;

    *data = t->plain;
    if (nj_tls_record_open(t->aead, &c->read, c->expanded[0], record, n_src, t->plain,
                           sizeof t->plain, &opened) != 0)
        return -1;
    if (opened.type == NJ_TLS_APPLICATION_DATA)
        return (int)opened.n_bytes;
    if (opened.type == NJ_TLS_ALERT && opened.n_bytes == 2 && t->plain[1] == NJ_TLS_CLOSE_NOTIFY) {
        c->closed = true;
        return 0; /* FIN follows */
    }
    return opened.type == NJ_TLS_HANDSHAKE && read_message(c, t->plain, opened.n_bytes) ? 0 : -1;
}

uint32_t load_tls_seal(struct load_tls_conn *c, const uint8_t *data, uint32_t n, uint8_t *out)
{
    uint32_t n_out = 0, n_max = load_tls_sealed_bytes(n);

    for (uint32_t at = 0; at < n;) {
        const struct nj_tls_src src = {data + at, nj_min_u32(n - at, NJ_TLS_CONTENT_MAX)};
        const struct nj_tls_dst dst = {out + n_out, n_max - n_out};
        int n_record = nj_tls_record_seal(c->of->aead, &c->write, c->expanded[1],
                                          NJ_TLS_APPLICATION_DATA, &src, 1, &dst, 1);
        if (n_record < 0)
            return 0;
        n_out += (uint32_t)n_record;
        at += src.n_bytes;
    }
    return n_out;
}
