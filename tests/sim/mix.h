/* SPDX-License-Identifier: BSD-3-Clause */
/* Parameters of one seed: the faults of its network, the behaviour of its clients and files. */
#pragma once

#include "channel.h"
#include "disk.h"
#include "store.h"

struct sim;
struct sim_conn;

#define SIM_WIDTHS_MAX 4u

/* TLS of a seed, and a path to the client that becomes narrower or wider. */
struct sim_tls_mix {
    bool on;
    nj_ns delay;     /* until a worker has done a flight of a handshake, at most */
    uint32_t refuse; /* chance that the workers refuse a flight */
    uint32_t n_widths;
    struct {
        nj_ns from;
        uint16_t mtu;
    } width[SIM_WIDTHS_MAX]; /* by time */
    bool icmp;               /* a router tells the server; otherwise it is a black hole */
};

struct sim_mix {
    const char *name;
    struct sim_faults net; /* the same in both directions */
    bool harsh;            /* a connection may time out here: dead is then an answer */

    /* The server host. */
    uint32_t tx_short;    /* chance that the device takes only part of a burst */
    uint32_t spurious;    /* chance that an idle shard is stepped all the same */
    uint32_t steer_queue; /* packets between shards */
    bool tight;           /* few transmit mbufs */
    bool resent;          /* what is sent again is compared (resent.h) */
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
    bool http1; /* clients speak HTTP/1, those of HTTP/2, too */
    struct sim_tls_mix tls;

    nj_ns start_at, calm_at; /* virtual time begins; faults end */
};

/* May packets be lost for tens of seconds? A path that drops long ones silently does that until TCP
 * sends shorter ones. */
static inline bool nj_sim_mix_delays(const struct sim_mix *m)
{
    return m->harsh || (m->tls.n_widths > 0 && !m->tls.icmp);
}

/* Four of five seeds: 5 % loss, 5 % duplicated, 5 % reordered. The fifth draws its own network.
 * Files and clients vary with all. One in four, or `always_tls`, has connections with TLS. */
void nj_sim_mix_draw(struct sim_mix *mix, uint64_t seed, bool always_tls);
