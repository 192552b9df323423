/* SPDX-License-Identifier: BSD-3-Clause */
#include "tls/current_context.h"

#include "tls/handshake_internal.h"

void nj_tls_server_context_take(struct nj_tls_server_context *c)
{
    nj_ref_take(&c->ref);
}

void nj_tls_server_context_put(struct nj_tls_server_context *c)
{
    nj_ref_put(&c->ref);
}

void nj_tls_current_context_init(struct nj_tls_current_context *current,
                                 struct nj_tls_server_context *c)
{
    pthread_mutex_init(&current->lock, NULL);
    current->context = c;
}

void nj_tls_current_context_replace(struct nj_tls_current_context *current,
                                    struct nj_tls_server_context *c)
{
    pthread_mutex_lock(&current->lock);
    struct nj_tls_server_context *former = current->context;
    current->context = c;
    pthread_mutex_unlock(&current->lock);
    nj_tls_server_context_put(former);
}

struct nj_tls_server_context *nj_tls_current_context_take(struct nj_tls_current_context *current)
{
    pthread_mutex_lock(&current->lock);
    struct nj_tls_server_context *c = current->context;
    nj_tls_server_context_take(c);
    pthread_mutex_unlock(&current->lock);
    return c;
}

void nj_tls_current_context_fini(struct nj_tls_current_context *current)
{
    nj_tls_server_context_put(current->context);
    pthread_mutex_destroy(&current->lock);
}
