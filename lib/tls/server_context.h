/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What all TLS connections of a server share: certificates with their private keys, the authority
 * of client certificates, both perhaps by site, the keys of session tickets. A session can be
 * resumed with the server names of its set only (RFC 8446 4.6.1). Immutable and reference-counted:
 * a reload makes a new one, and handshakes in progress keep the former; at their end the new one
 * must verify the client's certificate.
 *
 * It uses the default library context of OpenSSL, and so obeys openssl.cnf. A library context of
 * its own could not be freed: threads that have used it keep pointers into it until they end.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tls/current_context.h"
#include "tls/ticket_keys.h"

#define NJ_TLS_IDENTITIES_MAX 64u /* of a set */

struct nj_sites;

/* Files in PEM. `cert` has the certificate of the server first, then those of the authorities
 * between it and a root. */
struct nj_tls_identity_files {
    const char *cert, *key;
};

/* What some sites have in place of what the server has. */
struct nj_tls_set {
    uint64_t id; /* struct nj_site_identity.files of these sites */
    const struct nj_tls_identity_files *identities;
    uint32_t n_identities; /* 1..NJ_TLS_IDENTITIES_MAX */
    const char *client_ca;
    bool client_cert_required;
};

struct nj_tls_server_config {
    /* The first one answers clients that give no server name, or one that no certificate has. Two
     * with the same set of names and keys of different types (RSA, ECDSA) are offered together. */
    const struct nj_tls_identity_files *identities;
    uint32_t n_identities; /* 1..NJ_TLS_IDENTITIES_MAX */
    uint64_t id;           /* struct nj_site_identity.files of hosts without a site */
    /* Of sites; one with the id of the server or of an earlier one is skipped. `sites` finds the
     * identity of a server name, and with it the set; taken over, also on failure. NULL: there are
     * no sites. */
    const struct nj_tls_set *sets;
    uint32_t n_sets;
    struct nj_sites *sites;
    /* Files with OCSP responses in DER (RFC 6960), each about one of the certificates. A response
     * is stapled until its nextUpdate; one without is refused, as it could not expire. */
    const char *const *ocsp;
    uint32_t n_ocsp;           /* 0..NJ_TLS_IDENTITIES_MAX */
    int64_t (*unix_s)(void);   /* UNIX time, with `ocsp`; any thread */
    const char *client_ca;     /* PEM: clients are asked for a certificate; NULL: they are not */
    bool client_cert_required; /* a client without a certificate is refused */
    bool http1;                /* HTTP/1.1 is spoken with clients that do not offer h2 */
    struct nj_tls_ticket_keys *tickets; /* outlives the context; NULL: no resumption */
    /* Called with each line of the log of secrets (SSLKEYLOGFILE), by the thread of a handshake.
     * NULL: none. */
    void (*keylog)(void *ctx, const char *line);
    void *keylog_ctx;
};

/* Reads the files. Returns NULL, and one line with file, problem and remedy in `why`, if one cannot
 * be read or does not fit. Main thread. */
struct nj_tls_server_context *nj_tls_server_context_new(const struct nj_tls_server_config *config,
                                                        char *why, size_t n_why);
