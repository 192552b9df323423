/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One shard: everything between the receive queue and the transmit queue of one lcore. No other
 * lcore writes to it.
 *
 * Time is an argument, and the environment struct nj_shard_ops and struct nj_conns_ops, so the same
 * shard runs under DPDK, in the simulator and under fuzzers.
 *
 * The datapath is shard_step.c. All calls belong to the owning lcore unless stated otherwise.
 */
#pragma once

#include "base/event_rate_limit.h"
#include "base/types.h"
#include "conn/conns.h"
#include "net/rss_flow_owner.h"
#include "net/ip4_reassembly.h"
#include "net/nd_host.h"
#include "net/neighbours.h"
#include "shard/pool_gauges.h"
#include "shard/shard_env_ops.h"
#include "tcp/tcp.h"
#include "telem/count.h"
#include "telem/stage_cycles.h"
#include "wire/emit.h"

/* Packets made in a step and not yet taken by the device. TCP data leaves the last NJ_TXQ_RESERVE
 * entries to ACKs, ARP and ICMP. */
#define NJ_TXQ_MAX     512u
#define NJ_TXQ_RESERVE 64u

/* Cache of packet headers, valid while connections are served, since no routes or neighbours change
 * meanwhile. The second segment in a row between the same hosts fills it, and the following ones
 * copy it. */
struct nj_tx_head_cache {
    enum {
        NJ_TX_HEAD_OFF, /* connections are not being served */
        NJ_TX_HEAD_EMPTY,
        NJ_TX_HEAD_SEEN,   /* one segment between the hosts of `ip` was sent */
        NJ_TX_HEAD_CACHED, /* two were sent, and `head` holds their headers */
    } state;
    struct nj_ip_meta ip;
    struct nj_l2l3_cache head;
};

struct nj_shard_config {
    uint32_t index, n_shards; /* among the shards of the device */
    enum nj_steer_mode steering;
    uint32_t reta_size;
    struct nj_rss_key rss_key; /* the same for all shards */
    struct nj_iface iface;
    struct nj_shard_ops ops;
    struct rte_mempool *tx_pool;        /* this shard's own; see nj_tcp_config.mp */
    struct rte_ip_frag_tbl *frag_table; /* see nj_ip4_reasm_init() */
    struct nj_tx_offload tx;            /* offloads of the device */
    struct nj_listeners listeners;      /* those with is_tls need conns.tls */
    uint32_t conns_max, half_open_max;
    uint32_t held_max; /* see nj_tcp_config */
    nj_ns time_wait;
    bool newreno, ecn; /* congestion control; see nj_tcp_config */
    struct nj_hash_key flow_key, isn_key;
    struct nj_hash_key ndp_key; /* the same for all shards, see nj_nd_host_config */
    bool slaac;                 /* take IPv6 addresses from routers */
    bool no_dad;                /* another process of this host has checked the addresses */
    bool frames_reach_both;     /* while a process shares the port, each frame arrives at both */
    uint64_t seed;
    struct nj_conns_config conns;
};

/*
 * Which process handles a packet of no connection while two processes share a port, during an
 * upgrade (docs/adr/0024-two-processes-share-a-port.md). Packets of its own connections each
 * process handles itself.
 */
enum nj_port_role {
    NJ_PORT_ALONE,  /* no other process uses the port */
    NJ_PORT_KEEPS,  /* this one */
    NJ_PORT_TAKES,  /* this one, if the other process has passed the packet on */
    NJ_PORT_YIELDS, /* the other one */
};

struct nj_shard {
    struct nj_counters counters; /* first: aligned; other threads read it */
    struct nj_shard_config cfg;
    struct nj_steer steer;
    struct nj_neigh neigh;
    struct nj_nd_host ndp;
    struct nj_ip4_reasm frags;
    struct nj_tcp tcp;
    struct nj_conns conns;

    nj_ns now; /* time of the current step */
    enum nj_port_role role;
    uint32_t (*rx_alone)(void *ctx, struct rte_mbuf **m, uint32_t n); /* ops.rx of the config */
    uint16_t ip_ident;
    struct nj_tx_head_cache tx_head;
    struct nj_ratelimit echo_rate, problem_rate, replicate_rate;

    struct nj_pool_gauge pool_gauge[NJ_SHARD_POOLS];

    struct nj_stages stages;

    uint32_t txq_head, n_txq;
    struct rte_mbuf *txq[NJ_TXQ_MAX];
};

/* Returns false when memory is refused; everything is released then. */
bool nj_shard_init(struct nj_shard *s, const struct nj_shard_config *config, nj_ns now);
/* Waits for file jobs and for handlers that run on workers. Before it the thread that stepped calls
 * nj_conns_end(), as fibers belong to that thread; any thread may call this. */
void nj_shard_fini(struct nj_shard *s);

/* One step of the datapath. Returns the amount of work; 0: an idle step. */
uint32_t nj_shard_step(struct nj_shard *s, nj_ns now);

/* Without new packets nothing is due before this time. 0: step again at once. */
nj_ns nj_shard_next_at(const struct nj_shard *s);

/* Stores the gauges that other threads read. */
void nj_shard_publish(struct nj_shard *s);

/* Changes the role in sharing the port. YIELDS also sends GOAWAY on all connections; handshakes
 * that have begun are completed, and such connections get GOAWAY after their preface. Another role
 * ends that. */
void nj_shard_set_port_role(struct nj_shard *s, enum nj_port_role role, nj_ns now);
/* Are connections, file jobs or packets unfinished, or with YIELDS handshakes? A connection whose
 * peer has acknowledged everything and only has not closed does not count. */
bool nj_shard_has_unfinished_work(const struct nj_shard *s);
