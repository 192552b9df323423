/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One simulated world: a server of two shards, a host of clients, a wire that loses, repeats,
 * reorders and damages packets, and time that jumps from event to event. All that happens follows
 * from the seed.
 *
 *   main.c    command line            mix.c     what a seed brings
 *   sim.c     the loop over time      agenda.c  what will happen when
 *   server.c  two shards, their port  link.c    the wire
 *   client.c  TCP and ARP of clients  store.c   files behind the server
 *   conn.c    one client connection   disk.c    the disk that they are on
 *   pace.c    limits of what leaves   workers.c who opens them
 *   oracle.c  what must be true in the end
 *   runner.c  many seeds, many cores  channel.c what a wire does to a packet
 *   record.c  trace, pcap, hash       raw.c     frames as bytes
 *
 * The last four and agenda.c serve the simulator of TCP alone, too (tcp_sim.h).
 */
#ifndef NJ_TESTS_SIM_SIM_H
#define NJ_TESTS_SIM_SIM_H

#include "agenda.h"
#include "client.h"
#include "disk.h"
#include "link.h"
#include "mix.h"
#include "pace.h"
#include "record.h"
#include "server.h"
#include "store.h"

/* Two steps of one machine are at least this far apart. */
#define SIM_STEP_GAP (5 * NJ_US)

enum sim_event_kind { SIM_FRAME_TO_SERVER, SIM_FRAME_TO_CLIENT, SIM_TASK_DONE, SIM_DISK_DONE };

struct sim {
    uint64_t seed;
    struct sim_mix mix;
    nj_ns now;
    bool calm;         /* faults are over */
    bool draining;     /* the server was told to stop */
    uint64_t progress; /* packets and files that moved: a world without is stuck */
    struct sim_agenda agenda;
    struct sim_channel link;
    struct nj_file_store *store;
    struct sim_disk disk;
    uint32_t n_files_left; /* files and pieces that nobody gave back */
    struct sim_server server;
    struct sim_client client;
    struct sim_limits limits;
    struct sim_record record;
    uint64_t served[NJ_N_COUNTERS]; /* counters of both shards, when all is done */
};

/* What is kept from seed to seed, because making it takes longer than running one. */
struct sim_pools {
    struct rte_mempool *server_rx, *client_rx, *client_tx;
    struct rte_mempool *server_tx[SIM_SHARDS], *server_tx_tight[SIM_SHARDS];
};

/* A world as sim->mix says, at its beginning; one moment of it, not later than `until`; and its
 * end, to which all connections come by themselves. */
void nj_sim_begin(struct sim *sim, uint64_t seed, const struct sim_mix *mix,
                  const struct sim_pools *pools);
void nj_sim_moment(struct sim *sim, nj_ns until);
bool nj_sim_end(struct sim *sim, const struct sim_pools *pools);

/* Run one seed to its end. False: sim->record.why says what was wrong; nothing is freed then. */
bool nj_sim_run(struct sim *sim, uint64_t seed, const struct sim_pools *pools);

/* The first failure of a seed counts. */
#define nj_sim_fail(sim, ...) nj_sim_record_fail(&(sim)->record, (sim)->now, __VA_ARGS__)
/* A line in the trace. */
#define nj_sim_log(sim, ...)  nj_sim_record_line(&(sim)->record, (sim)->now, __VA_ARGS__)

/* --- oracle.c ------------------------------------------------------------------------------ */

/* After each step of a shard. */
void nj_sim_check_sums(struct sim *sim, const struct nj_shard *s);
/* When all is said and done, before anything is freed; and after. */
void nj_sim_check_quiet(struct sim *sim);
void nj_sim_check_freed(struct sim *sim, const struct sim_pools *pools);

#endif
