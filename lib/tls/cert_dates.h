/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What to tell an operator about the validity (RFC 5280 4.1.2.5) of the certificates of a context,
 * and of its OCSP responses: not yet valid, 30, 7 and 1 days before the end, and expired. Pure:
 * time is an argument.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "tls/server_context.h"

#define NJ_TLS_DATES_UNTOLD INT64_MIN /* nothing was told before */

struct nj_tls_date_note {
    const char *path; /* of the file; owned by the context */
    char text[256];   /* one line */
};

/* The next file to tell about at `now_s` (UNIX time, seconds), if the same was not to be told at
 * `before_s` already. `*at` is 0 before the first call. False: there is none. Any thread, with a
 * reference to the context. */
bool nj_tls_dates_next(const struct nj_tls_server_context *c, uint32_t *at, int64_t before_s,
                       int64_t now_s, struct nj_tls_date_note *note);

/* The validity of a file: from its latest notBefore to its first notAfter, in UNIX time. */
struct nj_tls_dates {
    const char *path; /* owned by the context */
    const char *kind; /* "certificate", "client_ca" or "ocsp" */
    int64_t from_s, until_s;
};

/* That of the i-th file; each file of a kind is there once. False: there is none. Any thread, with
 * a reference. */
bool nj_tls_dates_of_file(const struct nj_tls_server_context *c, uint32_t i,
                          struct nj_tls_dates *out);

/* A certificate of the server. */
struct nj_tls_cert_text {
    const char *path; /* of its file; owned by the context */
    char names[1024]; /* DNS names and addresses, separated by ", "; cut to that length */
    char expires[32]; /* "2027-01-31T12:00:00Z": the first one of its file */
};

/* Describe the i-th certificate. False: there is none. Any thread, with a reference. */
bool nj_tls_cert_describe(const struct nj_tls_server_context *c, uint32_t i,
                          struct nj_tls_cert_text *out);

/* Describe the certificate that a client with this server name gets; of an RSA and an ECDSA one for
 * the same names, the first. `name` may be empty. Any thread, with a reference. */
void nj_tls_cert_of_name(const struct nj_tls_server_context *c, const char *name,
                         struct nj_tls_cert_text *out);
