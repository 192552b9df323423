/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The server's side of TLS: its certificate, and stand-ins for the workers that run handshakes. A
 * task runs when the shard asks for finished ones. The key of the certificate is Ed25519, because
 * its signatures all have the same length (RFC 8032 5.1.6); so each run of an exchange sends
 * packets of the same lengths. One thread uses it.
 */
#pragma once

#include "sched/worker_ops.h"
#include "tls/server_context.h"

struct server_tls {
    struct nj_tls_ticket_keys tickets;
    struct nj_tls_current_context current;
    struct nj_list submitted; /* tasks that have not run */
    bool is_ready;
};

/* Makes the certificate and a context with it. False: OpenSSL or a temporary file failed; `why` has
 * the reason. */
bool server_tls_init(struct server_tls *t, char *why, size_t n_why);
/* `t` is initialised, or zero. */
void server_tls_fini(struct server_tls *t);
/* Whether tasks wait for the next step of the shard. `t` is initialised, or zero. */
static inline bool server_tls_has_tasks(const struct server_tls *t)
{
    return t->is_ready && !nj_list_empty(&t->submitted);
}

/* The functions of the workers, which use `t`. */
struct nj_worker_ops server_tls_workers(struct server_tls *t);
