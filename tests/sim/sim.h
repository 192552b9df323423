/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One simulated world: a server of two shards, a host of clients, a link that loses, duplicates,
 * reorders and damages packets, and virtual time. A seed determines the whole run.
 *
 *   main.c    command line            mix.c     parameters drawn from a seed
 *   sim.c     event loop              agenda.c  event queue
 *   server.c  two shards, their port  link.c    the link
 *   client.c  TCP and ARP of clients  store.c   files of the server
 *   conn.c    one client connection   disk.c    the disk of the files
 *   h2_client.c  its HTTP/2           h1.h      its HTTP/1
 *   routes.c  handlers
 *   pace.c    rate limits             workers.c workers that open files, or shake hands
 *   tls.c     contexts of TLS         tls_client.c  TLS of a client
 *   resent.c  bytes that are sent again
 *   oracle.c  invariants at the end
 *   runner.c  many seeds and cores    channel.c faults of a packet on a link
 *   record.c  trace, pcap, hash       raw.c     frames as bytes
 *
 * The last four and agenda.c are shared with the simulator of TCP alone (tcp_sim.h).
 */
#pragma once

#include "agenda.h"
#include "client.h"
#include "disk.h"
#include "link.h"
#include "mix.h"
#include "pace.h"
#include "record.h"
#include "resent.h"
#include "server.h"
#include "store.h"

#include "telem/counters.h"

/* Minimum time between two steps of one machine. */
#define SIM_STEP_GAP (5 * NJ_US)

enum sim_event_kind { SIM_FRAME_TO_SERVER, SIM_FRAME_TO_CLIENT, SIM_TASK_DONE, SIM_DISK_DONE };

struct sim {
    uint64_t seed;
    struct sim_mix mix;
    nj_ns now;
    bool calm;     /* faults have ended */
    bool draining; /* the server is shutting down */
    nj_ns drain_began_at;
    uint64_t progress; /* packets and files that moved: without any the world is stuck */
    struct sim_agenda agenda;
    struct sim_channel link;
    struct nj_file_store *store;
    struct sim_disk disk;
    uint32_t n_files_left; /* files and chunks that were never released */
    struct sim_server server;
    struct sim_client client;
    struct sim_limits limits;
    struct sim_resent resent;
    struct sim_tls *tls;
    struct sim_record record;
    uint64_t served[NJ_COUNTERS_MAX]; /* counters of both shards at the end */
};

/* Kept from seed to seed, because creation takes longer than a run. */
struct sim_pools {
    struct rte_mempool *server_rx, *client_rx, *client_tx;
    struct rte_mempool *server_tx[SIM_SHARDS], *server_tx_tight[SIM_SHARDS];
    struct sim_tls *tls; /* NULL: no seed has TLS */
    bool always_tls, always_http1;
};

/* Begin a world with sim->mix; process one instant, not later than `until`; end the world, in
 * which all connections end by themselves. */
void nj_sim_begin(struct sim *sim, uint64_t seed, const struct sim_mix *mix,
                  const struct sim_pools *pools);
void nj_sim_moment(struct sim *sim, nj_ns until);
bool nj_sim_end(struct sim *sim, const struct sim_pools *pools);

/* Run one seed to its end. False: the reason is in sim->record.why; nothing is freed. */
bool nj_sim_run(struct sim *sim, uint64_t seed, const struct sim_pools *pools);

/* Only the first failure of a seed is kept. */
#define nj_sim_fail(sim, ...) nj_sim_record_fail(&(sim)->record, (sim)->now, __VA_ARGS__)
/* A line in the trace. */
#define nj_sim_log(sim, ...)  nj_sim_record_line(&(sim)->record, (sim)->now, __VA_ARGS__)

/* --- oracle.c ------------------------------------------------------------------------------ */

/* After each step of a shard. */
void nj_sim_check_sums(struct sim *sim, const struct nj_shard *s);
/* At the end, before memory is freed; and after. */
void nj_sim_check_quiet(struct sim *sim);
void nj_sim_check_freed(struct sim *sim, const struct sim_pools *pools);
