/* SPDX-License-Identifier: BSD-3-Clause */
/* The lcores of a server and what belongs to each: its shard, and what connects it to other
 * threads. All arrays have `n` entries in use, in the order of the ports. */
#pragma once

#include "dpdk/lcore_loop.h"
#include "log/lcore_log.h"
#include "mgmt/transfers.h"
#include "store/file_client.h"

struct nj_shards {
    uint32_t n;
    struct nj_lcore lcore[NJ_SHARDS_MAX];
    struct nj_shard *shard[NJ_SHARDS_MAX];
    struct nj_wakeup wakeup[NJ_SHARDS_MAX];
    struct nj_fd_waits fd_waits[NJ_SHARDS_MAX];
    struct nj_shard_endpoint endpoint[NJ_SHARDS_MAX];
    struct nj_file_client file_client[NJ_SHARDS_MAX];
    struct nj_lcore_log log[NJ_SHARDS_MAX]; /* lines for the supervisor */
    struct nj_lcore_control control;
    struct nj_tsc_clock clock;
    int64_t wall_s_at_zero; /* UNIX time at zero of `clock` */
};

/* List the lcores of the EAL, open what wakes them, and start the clock; the shards are the
 * caller's to create. Returns 0, or -1 with the reason. Main thread. */
int nj__shards_open_lcores(struct nj_shards *s, char *why, size_t why_bytes);
void nj__shards_close_lcores(struct nj_shards *s);

/* What lists and ends transfers of these shards, once they exist. NULL: no memory. Main thread. */
struct nj_mgmt_transfers *nj__shards_open_transfers(struct nj_shards *s);

/* Wake all lcores. Any thread. */
void nj__shards_wake(struct nj_shards *s);
/* Set the phase of all lcores. The supervisor; the main thread before it runs and after its end. */
void nj__shards_set_phase(struct nj_shards *s, enum nj_run_phase phase);
/* Has no lcore a busy connection, after NJ_PHASE_YIELD or NJ_PHASE_DRAIN? Any thread. */
bool nj__shards_are_drained(const struct nj_shards *s);
