/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What all TLS connections of a server share: certificates with their private keys, the authority
 * of client certificates, the keys of session tickets. Immutable and reference-counted: a reload
 * makes a new one, and handshakes in progress keep the former.
 *
 * It has a library context of OpenSSL of its own, and reads no configuration file of OpenSSL.
 */
#ifndef NJ_TLS_SERVER_CONTEXT_H
#define NJ_TLS_SERVER_CONTEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tls/ticket_keys.h"

#define NJ_TLS_IDENTITIES_MAX 64u

/* Files in PEM. `cert` has the certificate of the server first, then those of the authorities
 * between it and a root. `ocsp` (a response in DER, RFC 6960) may be NULL. */
struct nj_tls_identity_files {
    const char *cert, *key, *ocsp;
};

struct nj_tls_server_config {
    /* The first one answers clients that give no server name, or one that no certificate has. Two
     * with the same name and keys of different types (RSA, ECDSA) are offered together. */
    const struct nj_tls_identity_files *identities;
    uint32_t n_identities;     /* 1..NJ_TLS_IDENTITIES_MAX */
    const char *client_ca;     /* PEM: clients are asked for a certificate; NULL: they are not */
    bool client_cert_required; /* a client without a certificate is refused */
    struct nj_tls_ticket_keys *tickets; /* outlives the context; NULL: no resumption */
    /* Called with each line of the log of secrets (SSLKEYLOGFILE), by the thread of a handshake.
     * NULL: none. */
    void (*keylog)(void *ctx, const char *line);
    void *keylog_ctx;
};

struct nj_tls_server_context;

/* Reads the files. Returns NULL, and one line with file, problem and remedy in `why`, if one cannot
 * be read or does not fit. Main thread. */
struct nj_tls_server_context *nj_tls_server_context_new(const struct nj_tls_server_config *config,
                                                        char *why, size_t n_why);
/* Any thread. */
void nj_tls_server_context_take(struct nj_tls_server_context *c);
/* Any thread. The last put frees it and wipes the private keys. */
void nj_tls_server_context_put(struct nj_tls_server_context *c);

#endif
