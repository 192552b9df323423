/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One direction of a link between two shards. Sent packets wait until wire_carry() copies them to
 * mbufs of the receiver, as a device would. The steps of the shards only pass mbufs.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <rte_mbuf.h>

/* Packets of a ring. */
#define WIRE_MAX 16384u

struct ring {
    uint32_t head, n;
    struct rte_mbuf *m[WIRE_MAX];
};

struct wire {
    struct rte_mempool *rx_pool; /* of the receiver */
    uint64_t n_lost;             /* packets that could not be copied */
    struct ring sent, arrived;
};

/* tx and rx of struct nj_shard_ops. They return the number of packets that change owners. */
uint32_t wire_send(struct wire *w, struct rte_mbuf **m, uint32_t n);
uint32_t wire_receive(struct wire *w, struct rte_mbuf **m, uint32_t n);

/* Moves all sent packets to the receiver. */
void wire_carry(struct wire *w);
/* Frees all packets that are in the wire. */
void wire_fini(struct wire *w);
