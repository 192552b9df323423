/* SPDX-License-Identifier: BSD-3-Clause */
/* The client host: one struct nj_tcp, one neighbour table, several connections. */
#pragma once

#include "conn.h"
#include "net/neighbours.h"
#include "server.h"
#include "tcp/tcp.h"

struct sim_client {
    struct nj_prng prng;
    struct nj_prng again_prng; /* separate, so that other draws of old seeds stay the same */
    struct sim_name popular;   /* the largest of the chunked files */
    struct rte_mempool *rx_pool;
    struct nj_counters counters;
    struct nj_iface iface;
    struct nj_neigh neigh;
    struct nj_tcp tcp;
    struct sim_queue rx;
    uint16_t ip_ident;
    nj_ns stepped_at;
    uint32_t n_conns;
    struct sim_conn *conn;
};

void nj_sim_client_init(struct sim *sim, const struct sim_pools *pools);
void nj_sim_client_fini(struct sim *sim);
void nj_sim_client_receive(struct sim *sim, const struct sim_frame *f);
nj_ns nj_sim_client_next(const struct sim *sim);
void nj_sim_client_step(struct sim *sim);
/* Have all connections ended? */
bool nj_sim_client_done(const struct sim *sim);
