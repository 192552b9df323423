/* SPDX-License-Identifier: BSD-3-Clause */
/* Answers requests that the rules of a site refuse or redirect. Root context of the shard only. */
#pragma once

#include "base/compiler.h"
#include "http/proto/path_cache.h"
#include "http/transaction.h"

/* Finds the rules of a request, which are t->rules from here on until the response has begun, and
 * answers it if they do: 421, 403, 405, a redirect, or 204 to a preflight of CORS. True: it was
 * answered. */
bool nj__site_answer(const struct nj_sites *sites, struct nj_txn *t,
                     const struct nj_request_head *head, const struct nj_target *target);

/* Do these rules deny the client of a request, which trusted proxies may name? */
bool nj_site_denies(const struct nj_txn *t, const struct nj_site_rules *rules);

static inline bool nj_site_answer(struct nj_txn *t, const struct nj_request_head *head,
                                  const struct nj_target *target)
{
    const struct nj_sites *sites = nj_shape_policy(t->set->shape)->sites;

    return nj_unlikely(sites) && nj__site_answer(sites, t, head, target);
}
