/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Minisocks (the term is Linux's): flows without a control block. struct nj_syn is a passive open
 * in SYN-RECEIVED, struct nj_time_wait a connection in TIME-WAIT without a user. Both keep only the
 * sequence numbers and options needed to answer the peer.
 */
#pragma once

#include "base/list.h"
#include "tcp/flow_table.h"

/* nj_flow.flags: options negotiated in the handshake. */
#define NJ_MINISOCK_TS        0x01u
#define NJ_MINISOCK_WSCALE    0x02u
#define NJ_MINISOCK_SACK      0x04u
#define NJ_MINISOCK_ECN       0x08u
#define NJ_MINISOCK_RESTARTED 0x10u /* 2 MSL restarted since it was queued */

struct nj_minisock {
    struct nj_flow flow;
    uint32_t snd_nxt, rcv_nxt;
    uint32_t ts_recent; /* RFC 7323, when NJ_MINISOCK_TS */
};

/* Retransmissions of a SYN-ACK: a half-open connection lives 1+2+4+8+16+32 = 63 s. */
#define NJ_TCP_SYNACK_RETRIES 5

/* A connection in SYN-RECEIVED that a peer opened. */
struct nj_syn {
    struct nj_minisock bare; /* snd_nxt and rcv_nxt are one beyond the initial numbers */
    uint16_t peer_mss;       /* MSS option of the SYN; 0: none */
    uint8_t peer_wscale;     /* when NJ_MINISOCK_WSCALE */
    uint8_t n_sent;          /* SYN-ACKs */
    uint8_t n_waits;         /* time-outs; index in nj_tcp.syn_due */
    nj_ns due, first_at;
    struct nj_list node;
};
_Static_assert(sizeof(struct nj_syn) <= 96, "a forged SYN costs this much, and a pool line more");

/* A connection in TIME-WAIT without a user. */
struct nj_time_wait {
    struct nj_minisock bare;
    uint32_t ends; /* ticks of the timing wheel, modulo 2^32 */
    uint32_t next; /* pool index + 1 of the next in the queue; 0: none */
};
_Static_assert(sizeof(struct nj_time_wait) == 64, "one cache line");

/* FIFO. Entries whose 2 MSL restart, and entries that are replaced, stay in place until they reach
 * the front. */
struct nj_time_wait_queue {
    uint32_t first, last; /* pool index + 1; 0: empty */
    uint32_t n_live;      /* entries not replaced */
};
