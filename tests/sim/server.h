/* SPDX-License-Identifier: BSD-3-Clause */
/* The server host: two real shards behind one MAC address. The device has no RSS: it delivers each
 * packet to either shard, and the shards steer it to its owner. */
#pragma once

#include "disk.h"
#include "link.h"
#include "queue.h"
#include "shard/shard.h"
#include "store/file_client.h"
#include "workers.h"

struct sim;
struct sim_pools;

#define SIM_SHARDS 2u

/* One shard and the state of its port. */
struct sim_lane {
    struct sim *sim;
    uint32_t index;
    struct nj_shard *shard;
    struct sim_queue rx, steered;
    struct sim_workers workers, tls_workers;
    struct nj_file_client files;
    uint32_t (*poll_files)(void *files, struct nj_file_job **jobs, uint32_t n);
    bool has_files; /* the reader may have completed jobs */
    nj_ns stepped_at;
    nj_ns spent, worked; /* CPU time: of that step, of all */
    uint64_t progress_seen;
    uint32_t n_vain; /* steps since anything moved in the world */
};

struct sim_server {
    struct nj_prng prng;
    struct rte_mempool *rx_pool;
    struct nj_file_reader *reader;
    struct nj_routes *routes; /* or NULL */
    struct sim_lane lane[SIM_SHARDS];
};

extern const struct nj_iface nj_sim_iface[2]; /* by enum sim_side */

#define SIM_SERVER_PORT 80u

void nj_sim_server_init(struct sim *sim, const struct sim_pools *pools);
void nj_sim_server_fini(struct sim *sim);
void nj_sim_server_receive(struct sim *sim, const struct sim_frame *f);
/* Time of the lane's next step; immediate if it has input. */
nj_ns nj_sim_lane_next(const struct sim_lane *lane);
void nj_sim_lane_step(struct sim_lane *lane);
/* Let the reader run. */
void nj_sim_server_read(struct sim *sim);
bool nj_sim_server_busy(const struct sim *sim);
