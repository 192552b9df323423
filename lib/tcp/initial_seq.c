/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Initial sequence numbers: RFC 6528 3, ISN = M + F(tuple, secret), M ticking every 4 us.
 * Timestamps begin at the other half of F.
 */
#include "tcp/tcp_internal.h"

/* RFC 6528 3. */
uint32_t nj__tcp_isn(const struct nj_tcp *tcp, const struct nj_tuple *tuple, nj_ns now)
{
    return (uint32_t)(now / (4 * NJ_US)) +
           (uint32_t)nj_hash(&tcp->cfg.isn_key, tuple, sizeof *tuple);
}

/* One offset per tuple, so that the timestamps of its next connection go on where those of the last
 * one ended: PAWS then tells packets of the two apart (RFC 7323 5.8, RFC 6191 2), also when numbers
 * of a fast connection had run ahead of M. */
uint32_t nj__tcp_ts_offset(const struct nj_tcp *tcp, const struct nj_tuple *tuple)
{
    return (uint32_t)(nj_hash(&tcp->cfg.isn_key, tuple, sizeof *tuple) >> 32);
}
