/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A capture at the queues of a shard: copies of the packets that its receive queue gives, and of
 * those that its transmit queue takes, for another thread. Packets are copied as the device sees
 * them: with VLAN tags, before it segments them or completes checksums. Those that other shards
 * forward are not copied again.
 *
 * While there is none, it costs one check per burst. No mbuf is held, and the lcore never waits:
 * what the ring has no room for is counted there as lost.
 */
#pragma once

#include "base/command_ring.h"
#include "base/record_ring.h"
#include "base/types.h"

struct nj_shard_endpoint;
struct rte_mbuf;

/* In place of a number of bytes: the headers of a packet (wire/header_span.h), no payload. */
#define NJ_CAPTURE_HEADERS     0u
#define NJ_CAPTURE_SNAPLEN_MAX 262144u

/* Of one shard. It outlives the command that takes it from the lcore. */
struct nj_capture {
    struct nj_record_ring *ring; /* of struct nj_captured */
    struct nj_net of;            /* source or destination; 0 bits: all packets */
    uint32_t snaplen;            /* bytes of a packet that are kept, or NJ_CAPTURE_HEADERS */
};

struct nj_captured {
    uint64_t tsc;     /* when the burst was received, or given to the device */
    uint32_t n_bytes; /* of the packet */
    uint32_t n_kept;  /* of `data` */
    bool is_sent;     /* else received */
    uint8_t data[];
};

/* Begins a capture, or ends it. */
struct nj_capture_command {
    struct nj_command command;
    struct nj_shard_endpoint *end; /* of the lcore that runs it */
    struct nj_capture *capture;    /* NULL: none any more */
};
void nj_capture_begin(struct nj_capture_command *c);

/* For shard_rings.c, on the lcore. */
void nj__capture_received(struct nj_capture *c, struct rte_mbuf *const *m, uint32_t n);
/* Copies packets, gives them to a queue of the device, and keeps the copies of those that it took,
 * whose number it returns. At most NJ_BURST_MAX packets. */
uint32_t nj__capture_send(struct nj_capture *c, uint16_t port, uint16_t queue, struct rte_mbuf **m,
                          uint32_t n);
