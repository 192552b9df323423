/* SPDX-License-Identifier: BSD-3-Clause */
/* Initial sequence numbers: RFC 6528, ISN = M + F(tuple, secret), M ticking every 4 us. */
#include "tcp/tcp_internal.h"

uint32_t nj__tcp_isn(const struct nj_tcp *tcp, const struct nj_tuple *tuple, nj_ns now)
{
    return (uint32_t)(now / (4 * NJ_US)) +
           (uint32_t)nj_hash(&tcp->cfg.isn_key, tuple, sizeof *tuple);
}
