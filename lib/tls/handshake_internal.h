/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared by server_context.c, which configures libssl, and handshake.c, which runs it. */
#pragma once

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

/* The validity of a file: that of its certificate that expires first, from the time at which all of
 * them are valid. */
struct nj__tls_dates {
    char *path; /* owned */
    enum { NJ__TLS_DATES_OWN, NJ__TLS_DATES_CLIENT_CA, NJ__TLS_DATES_OCSP } kind;
    uint32_t number;         /* of the certificate that expires first, in the file; from 1 */
    int64_t from_s, until_s; /* UNIX time, both included */
};

/* Identities next to each other that have the same authorities of clients. */
struct nj__tls_set {
    uint64_t id; /* struct nj_tls_set.id */
    uint32_t first, n;
};

struct nj_tls_server_context {
    struct nj_ref ref;
    struct nj_tls_ticket_keys *tickets;
    int64_t (*unix_s)(void);
    void (*keylog)(void *ctx, const char *line);
    void *keylog_ctx;
    bool http1;             /* spoken with clients that do not offer h2 */
    struct nj_sites *sites; /* identities by server name; NULL: none */
    uint32_t n_sets, n_identities, n_certs, n_ocsp, n_dates;
    struct nj__tls_set *set; /* the server's is the first one */
    struct nj__tls_identity *identity;
    X509 **cert; /* of all files, each once; with a reference of its own */
    struct nj__tls_ocsp ocsp[NJ_TLS_IDENTITIES_MAX];
    struct nj__tls_dates *dates; /* each file once; of certificates in the order of `cert` */
};

struct nj_tls_handshake {
    struct nj_tls_server_context *context;
    SSL *ssl;      /* NULL: released */
    BIO *in, *out; /* owned by ssl, until it is released */
    enum nj_tls_failure failure;
    bool name_is_known; /* a certificate has the client's server name */
    struct nj_tls_handshake_info info;
};

/* server_name.c: the set with this id, else the server's. */
const struct nj__tls_set *nj__tls_find_set(const struct nj_tls_server_context *c, uint64_t id);
/* The identity that answers a client with this server name, which may be empty.
 * `*of`: that of its site. `*is_known`: a certificate of the set has the name. */
const struct nj__tls_identity *nj__tls_choose(const struct nj_tls_server_context *c,
                                              const char *name, struct nj_site_identity *of,
                                              bool *is_known);

/* cert_dates.c: UNIX time; 0 if it is malformed. */
int64_t nj__tls_unix_time(const ASN1_TIME *t);
/* Narrow the dates to those of this certificate, the `number`th of the file. */
void nj__tls_dates_narrow(struct nj__tls_dates *d, const X509 *cert, uint32_t number);

/* file_guess.c: why OpenSSL finds no certificate (or, with `wants_key`, no key that needs no
 * password) in the file: words for an operator, or NULL if nothing is known. */
const char *nj__tls_guess_file(const char *path, bool wants_key);
/* Reads at most 64 KiB of a file into memory that core dumps omit, which the buffer of a FILE is
 * not in. Returns the bytes, for nj__tls_wipe_private(), and their number in `*n`; NULL with errno.
 */
uint8_t *nj__tls_read_private(const char *path, uint32_t *n);
void nj__tls_wipe_private(uint8_t *bytes);

/* handshake.c: the callbacks that server_context.c sets. */
void nj__tls_on_secret(const SSL *ssl, const char *line);
int nj__tls_on_client_hello(SSL *ssl, int *alert, void *context);
int nj__tls_on_alpn(SSL *ssl, const unsigned char **out, unsigned char *n_out,
                    const unsigned char *in, unsigned n_in, void *context);
int nj__tls_on_ticket(SSL *ssl, unsigned char *name, unsigned char *iv, EVP_CIPHER_CTX *cipher,
                      EVP_MAC_CTX *mac, int encrypts);
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
