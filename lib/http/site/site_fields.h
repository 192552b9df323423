/* SPDX-License-Identifier: BSD-3-Clause */
/* The fields of responses that the rules of a site change. Root context of the shard only. */
#pragma once

#include "base/response_head.h"
#include "http/transaction.h"

/* Changes the fields of a response as t->rules want, but for those of every response (server,
 * date), which the caller adds. */
void nj_site_change_fields(const struct nj_txn *t, struct nj_resp_head *r);

struct nj_site_rules;
/* Do the rules remove this field? */
bool nj_site_removes(const struct nj_site_rules *rules, struct nj_str name);

/* The response has begun, or the transaction ends: it no longer uses its rules. */
void nj_site_drop_rules(struct nj_txn *t);
