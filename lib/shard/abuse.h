/* SPDX-License-Identifier: BSD-3-Clause */
/* Protection that acted against a client: the counter of the reason, and the client's address. */
#ifndef NJ_SHARD_ABUSE_H
#define NJ_SHARD_ABUSE_H

#include "shard/shard.h"

/* Counts `reason` (a counter of kind EVENT) and records `client` as its cause. The shard's lcore
 * only. */
void nj__abuse(struct nj_shard *s, enum nj_counter reason, const struct nj_addr *client);

#endif
