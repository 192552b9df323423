/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Parses the TCP header and options (RFC 9293 3.1 and 3.2). Bytes are copied before they are read,
 * since a packet may start at any address.
 */
#include "wire/tcp_parse.h"

#include <string.h>

#include <rte_byteorder.h>
#include <rte_tcp.h>

#include "base/big_endian.h"
#include "wire/tcp_opt.h"

/* RFC 9293 3.1: an invalid data offset is rejected. */
bool nj__tcp_parse_header(const uint8_t *p, uint32_t n_bytes, struct nj_seg *seg)
{
    struct rte_tcp_hdr h;

    if (n_bytes < sizeof h)
        return false;
    memcpy(&h, p, sizeof h);

    uint32_t hdr_bytes = (uint32_t)(h.data_off >> 4) * 4;
    if (hdr_bytes < sizeof h || hdr_bytes > n_bytes)
        return false;
    if (h.src_port == 0 || h.dst_port == 0)
        return false;

    seg->tuple.rport = rte_be_to_cpu_16(h.src_port);
    seg->tuple.lport = rte_be_to_cpu_16(h.dst_port);
    seg->seq = rte_be_to_cpu_32(h.sent_seq);
    seg->ack = rte_be_to_cpu_32(h.recv_ack);
    seg->wnd = rte_be_to_cpu_16(h.rx_win);
    seg->flags = h.tcp_flags;
    seg->payload_off = hdr_bytes;
    seg->payload_bytes = n_bytes - hdr_bytes;
    return true;
}

/* RFC 2018 3. 40 bytes of options hold four blocks; blocks of a second SACK option would exceed
 * them. */
static bool parse_sack(const uint8_t *p, uint32_t n_bytes, bool syn, struct nj_tcp_opts *opts)
{
    if (n_bytes == 0 || n_bytes % NJ__OPT_SACK_BLOCK_BYTES != 0)
        return false;
    for (; n_bytes > 0 && !syn; n_bytes -= NJ__OPT_SACK_BLOCK_BYTES) {
        if (opts->n_sack == NJ_SACK_BLOCKS_MAX)
            return false;
        opts->sack[opts->n_sack++] = (struct nj_sack_block){nj_get_be32(p), nj_get_be32(p + 4)};
        p += NJ__OPT_SACK_BLOCK_BYTES;
    }
    return true;
}

/* Parses one option of `n_bytes`, including kind and length. False if a supported option has an
 * invalid length. */
static bool parse_option(const uint8_t *p, uint32_t n_bytes, bool syn, struct nj_tcp_opts *opts)
{
    switch (p[0]) {
    case NJ__OPT_MSS:
        if (n_bytes != NJ__OPT_MSS_BYTES)
            return false;
        opts->has_mss = syn;
        opts->mss = syn ? nj_get_be16(p + 2) : 0;
        return true;
    case NJ__OPT_WSCALE:
        if (n_bytes != NJ__OPT_WSCALE_BYTES)
            return false;
        opts->has_wscale = syn;
        opts->wscale = syn ? p[2] : 0;
        return true;
    case NJ__OPT_SACK_PERMITTED:
        if (n_bytes != NJ__OPT_SACK_PERMITTED_BYTES)
            return false;
        opts->sack_permitted = syn;
        return true;
    case NJ__OPT_SACK:
        return parse_sack(p + 2, n_bytes - 2, syn, opts);
    case NJ__OPT_TS:
        if (n_bytes != NJ__OPT_TS_BYTES)
            return false;
        opts->has_ts = true;
        opts->ts_val = nj_get_be32(p + 2);
        opts->ts_ecr = nj_get_be32(p + 6);
        return true;
    default:
        return true; /* RFC 9293 3.1, MUST-6: unknown options are skipped */
    }
}

bool nj__tcp_parse_options(const uint8_t *p, uint32_t n_bytes, bool syn, struct nj_tcp_opts *opts)
{
    memset(opts, 0, sizeof *opts);

    while (n_bytes > 0) {
        if (p[0] == NJ__OPT_EOL)
            return true; /* the rest is padding */
        if (p[0] == NJ__OPT_NOP) {
            p++, n_bytes--;
            continue;
        }
        /* RFC 9293 3.1, MUST-7: invalid lengths must be handled. */
        if (n_bytes < 2 || p[1] < 2 || p[1] > n_bytes)
            return false;
        uint32_t opt_bytes = p[1];
        if (!parse_option(p, opt_bytes, syn, opts))
            return false;
        p += opt_bytes, n_bytes -= opt_bytes;
    }
    return true;
}
