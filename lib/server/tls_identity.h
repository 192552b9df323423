/* SPDX-License-Identifier: BSD-3-Clause */
/* The certificates and ticket keys of a server with TLS, for all its shards. */
#pragma once

#include "base/types.h"
#include "config/settings_validate.h"
#include "tls/server_context.h"

/* Contains keys. */
struct nj_tls_identity {
    bool has_tls;
    bool asks_clients; /* for certificates */
    struct nj_tls_current_context current;
    struct nj_tls_ticket_keys tickets;
    int64_t dates_checked_s; /* supervisor only: UNIX time of the last check of certificates */
    nj_ns tickets_rotate_at; /* supervisor only; of CLOCK_MONOTONIC */
    int keylog;              /* descriptor of --keylog, or -1 */
};

/* Read the certificates, of [tls] and of sites, if there are any. Returns 0, or -1 with the reason.
 * Main thread. */
int nj__tls_identity_open(struct nj_tls_identity *t, const struct nj_settings *settings, char *why,
                          size_t why_bytes);
void nj__tls_identity_close(struct nj_tls_identity *t);
/* Read those of other settings. Returns 0, with *next NULL if they or the server have none, or -1
 * with the reason. Any thread but an lcore. */
int nj__tls_identity_read(struct nj_tls_identity *t, const struct nj_settings *settings,
                          struct nj_tls_server_context **next, char *why, size_t why_bytes);
/* Use them for new handshakes. Takes `next` over. Any thread but an lcore. */
void nj__tls_identity_replace(struct nj_tls_identity *t, const struct nj_settings *settings,
                              struct nj_tls_server_context *next);
/* Log which certificates have expired or expire soon, if it was not logged before. `now_s`: UNIX
 * time. The supervisor, once per tick. */
void nj__tls_identity_check_dates(struct nj_tls_identity *t, int64_t now_s);
/* Make a new key for session tickets, if it is time. The supervisor, once per tick. */
void nj__tls_identity_rotate_tickets(struct nj_tls_identity *t, nj_ns now);
