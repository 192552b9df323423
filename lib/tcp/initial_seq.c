/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Initial sequence numbers (RFC 6528 3): ISN = M + F(tuple, secret), where M advances every 4 us.
 * Timestamp offsets (RFC 7323) come from the other half of F.
 */
#include "tcp/tcp_internal.h"

/* RFC 6528 3. */
uint32_t nj__tcp_isn(const struct nj_tcp *tcp, const struct nj_tuple *tuple, nj_ns now)
{
    return (uint32_t)(now / (4 * NJ_US)) +
           (uint32_t)nj_hash(&tcp->cfg.isn_key, tuple, sizeof *tuple);
}

/* One offset per tuple, so that timestamps continue across connections. PAWS then distinguishes
 * segments of successive connections (RFC 7323 5.8, RFC 6191 2), even if the sequence numbers of a
 * fast connection ran ahead of M. */
uint32_t nj__tcp_ts_offset_of_tuple(const struct nj_tcp *tcp, const struct nj_tuple *tuple)
{
    return (uint32_t)(nj_hash(&tcp->cfg.isn_key, tuple, sizeof *tuple) >> 32);
}
