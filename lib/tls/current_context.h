/* SPDX-License-Identifier: BSD-3-Clause */
/* References to what all TLS connections share (server_context.h), and the one of them that new
 * handshakes use. */
#pragma once

#include <pthread.h>

struct nj_tls_server_context;

/* Any thread. */
void nj_tls_server_context_take(struct nj_tls_server_context *c);
/* Any thread. The last put frees it and wipes the private keys. */
void nj_tls_server_context_put(struct nj_tls_server_context *c);

/* The context of new handshakes, which a reload replaces. Any thread; the lock is held for some
 * instructions only. */
struct nj_tls_current_context {
    pthread_mutex_t lock;
    struct nj_tls_server_context *context;
};

/* Takes over the caller's reference of `c`. */
void nj_tls_current_context_init(struct nj_tls_current_context *current,
                                 struct nj_tls_server_context *c);
/* As init; puts the former context. */
void nj_tls_current_context_replace(struct nj_tls_current_context *current,
                                    struct nj_tls_server_context *c);
/* Returns the context with a reference for the caller. */
struct nj_tls_server_context *nj_tls_current_context_take(struct nj_tls_current_context *current);
/* No other thread uses it. */
void nj_tls_current_context_fini(struct nj_tls_current_context *current);
