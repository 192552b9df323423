/* SPDX-License-Identifier: BSD-3-Clause */
#include "shard/abuse.h"

void nj__abuse(struct nj_shard *s, enum nj_counter reason, const struct nj_addr *client)
{
    (void)client;
    nj_count(&s->counters, reason);
}
