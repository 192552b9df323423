/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared by server_context.c, which configures libssl, and handshake.c, which runs it. */
#ifndef NJ_TLS_HANDSHAKE_INTERNAL_H
#define NJ_TLS_HANDSHAKE_INTERNAL_H

#include <openssl/ssl.h>

#include "base/ref.h"
#include "tls/handshake.h"

/* A certificate chain with its key, or two of different types for the same name. */
struct nj__tls_identity {
    SSL_CTX *ctx;
    X509 *cert; /* the first one, for its names; owned by ctx */
};

/* The OCSP response about a certificate. */
struct nj__tls_ocsp {
    X509 *cert;        /* owned by the SSL_CTX of its identity */
    int64_t expires_s; /* UNIX time of its nextUpdate */
    uint8_t *bytes;
    uint32_t n_bytes;
};

struct nj_tls_server_context {
    struct nj_ref ref;
    struct nj_tls_ticket_keys *tickets;
    int64_t (*unix_s)(void);
    void (*keylog)(void *ctx, const char *line);
    void *keylog_ctx;
    uint32_t n_identities, n_certs, n_ocsp;
    struct nj__tls_identity identity[NJ_TLS_IDENTITIES_MAX];
    X509 *cert[NJ_TLS_IDENTITIES_MAX]; /* all; owned by the SSL_CTX of their identities */
    struct nj__tls_ocsp ocsp[NJ_TLS_IDENTITIES_MAX];
};

struct nj_tls_handshake {
    struct nj_tls_server_context *context;
    SSL *ssl;      /* NULL: released */
    BIO *in, *out; /* owned by ssl, until it is released */
    enum nj_tls_failure failure;
    bool name_is_known; /* a certificate has the client's server name */
    struct nj_tls_handshake_info info;
};

/* handshake.c: the callbacks that server_context.c sets. */
void nj__tls_on_secret(const SSL *ssl, const char *line);
int nj__tls_on_client_hello(SSL *ssl, int *alert, void *context);
int nj__tls_on_alpn(SSL *ssl, const unsigned char **out, unsigned char *n_out,
                    const unsigned char *in, unsigned n_in, void *context);
int nj__tls_on_ticket(SSL *ssl, unsigned char *name, unsigned char *iv, EVP_CIPHER_CTX *cipher,
                      EVP_MAC_CTX *mac, int is_sealing);
SSL_TICKET_RETURN nj__tls_on_opened_ticket(SSL *ssl, SSL_SESSION *session,
                                           const unsigned char *name, size_t n_name,
                                           SSL_TICKET_STATUS status, void *arg);
int nj__tls_on_ocsp(SSL *ssl, void *context);
/* Acknowledges the server name if a certificate has it (RFC 6066 3). */
int nj__tls_on_server_name(SSL *ssl, int *alert, void *arg);
/* The record_size_limit extension (RFC 8449). */
int nj__tls_add_record_limit(SSL *ssl, unsigned type, unsigned context, const unsigned char **out,
                             size_t *n_out, X509 *x, size_t chain, int *alert, void *arg);
int nj__tls_parse_record_limit(SSL *ssl, unsigned type, unsigned context, const unsigned char *in,
                               size_t n_in, X509 *x, size_t chain, int *alert, void *arg);

#endif
