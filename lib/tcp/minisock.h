/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Flows without a control block: before a connection that a peer opens (struct nj_syn), and after
 * one that we closed first (struct nj_time_wait). Both know where the two streams stand and can say
 * so to the peer, and that is all.
 */
#ifndef NJ_TCP_MINISOCK_H
#define NJ_TCP_MINISOCK_H

#include "base/list.h"
#include "tcp/flow_table.h"

/* nj_flow.flags: what the handshake agreed on. */
#define NJ_BARE_TS     0x01u
#define NJ_BARE_WSCALE 0x02u
#define NJ_BARE_SACK   0x04u
#define NJ_BARE_ECN    0x08u
#define NJ_BARE_AGAIN  0x10u /* its 2 MSL started over since it was queued */

struct nj_bare {
    struct nj_flow flow;
    uint32_t snd_nxt, rcv_nxt;
    uint32_t ts_recent; /* RFC 7323, when NJ_BARE_TS */
};

/* SYN-ACKs that are sent again: 1+2+4+8+16+32 s make 63 s for a half-open connection. */
#define NJ_TCP_SYNACK_TRIES 5

/* A connection in SYN-RECEIVED that a peer opened. */
struct nj_syn {
    struct nj_bare bare; /* snd_nxt and rcv_nxt are one beyond the initial numbers */
    uint16_t peer_mss;   /* as the SYN said; 0: it did not */
    uint8_t peer_wscale; /* when NJ_BARE_WSCALE */
    uint8_t n_sent;      /* SYN-ACKs */
    uint8_t n_waits;     /* time-outs: which of nj_tcp.syn_due it is on */
    nj_ns due, first_at;
    struct nj_list node;
};
_Static_assert(sizeof(struct nj_syn) <= 96, "a forged SYN costs this much, and a pool line more");

/* A connection in TIME-WAIT whose user has let go. */
struct nj_time_wait {
    struct nj_bare bare;
    uint32_t ends; /* ticks of the timing wheel, modulo 2^32 */
    uint32_t next; /* place in the pool plus one of the one that came next; 0: none */
};
_Static_assert(sizeof(struct nj_time_wait) == 64, "one cache line");

/* In the order in which they came. Those that restart their 2 MSL, and those that are replaced,
 * stay where they are until they come to the front. */
struct nj_time_wait_queue {
    uint32_t first, last; /* places plus one */
    uint32_t n_live;      /* that are not replaced */
};

#endif
