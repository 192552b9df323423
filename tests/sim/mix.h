/* SPDX-License-Identifier: BSD-3-Clause */
/* Parameters of one seed: the faults of its network, the behaviour of its clients and files. */
#ifndef NJ_TESTS_SIM_MIX_H
#define NJ_TESTS_SIM_MIX_H

#include "channel.h"
#include "disk.h"
#include "store.h"

struct sim;
struct sim_conn;

struct sim_mix {
    const char *name;
    struct sim_faults net; /* the same in both directions */
    bool harsh;            /* a connection may time out here: dead is then an answer */

    /* The server host. */
    uint32_t tx_short;    /* chance that the device takes only part of a burst */
    uint32_t spurious;    /* chance that an idle shard is stepped all the same */
    uint32_t steer_queue; /* packets between shards */
    bool tight;           /* few transmit mbufs */
    bool limits;          /* one seed in three has some (pace.h) */
    nj_ns time_wait;
    nj_ns step_ns, frame_ns; /* CPU time of a shard: of a step, of a frame in or out */
    nj_ns drain_at;          /* stop the server in the middle of it; NJ_NEVER: when all is done */

    /* Files. */
    nj_ns file_delay; /* until a worker has done a task, at most */
    uint32_t file_queue;
    uint32_t file_refuse; /* chance that a task is refused though there is room */
    struct sim_disk_plan disk;
    struct sim_store_plan store;

    /* Clients. */
    void (*plan)(struct sim_conn *c, struct sim *sim, uint32_t index);
    uint32_t n_addrs;             /* of the client host */
    uint32_t n_conns, n_requests; /* at most */
    bool odd_clients;             /* resets, stalls, uploads, HTTP/1, garbage, silence */
    bool odd_files;               /* missing, forbidden, broken ones */
    uint32_t bytes_budget;        /* of bodies, over all connections */
    uint16_t client_mtu;

    nj_ns start_at, calm_at; /* virtual time begins; faults end */
};

/* Four of five seeds: 5 % loss, 5 % duplicated, 5 % reordered. The fifth draws its own network.
 * Files and clients vary with all. */
void nj_sim_mix_draw(struct sim_mix *mix, uint64_t seed);

#endif
