/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Lines of protection that acted: of each reason at most one per second for the whole server, with
 * how often it was since the last line, and against whom. One thread's.
 */
#ifndef NJ_LOG_ABUSE_LOG_H
#define NJ_LOG_ABUSE_LOG_H

#include <stdbool.h>

#include "conn/abuse_counts.h"

#define NJ_ABUSE_LINE_BYTES 256u

/* Begins as zero. */
struct nj_abuse_log {
    uint64_t n_told_all;            /* of all reasons, in lines */
    uint64_t n_told[NJ_N_COUNTERS]; /* of each */
    nj_ns told_at[NJ_N_COUNTERS];
};

/* The next line that is due; to be called until there is none. `of` are the records of the `n`
 * shards. False: none is. */
bool nj_abuse_log_next(struct nj_abuse_log *log, const struct nj_abuse *const *of, uint32_t n,
                       nj_ns now, char line[NJ_ABUSE_LINE_BYTES]);

/* What all shards together have of a reason: how often, and the client that most acts of a shard
 * were against in the last second in which there were any. `others`: in that second there were acts
 * against other clients, too. False: nothing, or all of it is being written to. */
bool nj_abuse_sum(const struct nj_abuse *const *of, uint32_t n, enum nj_counter reason,
                  struct nj_abuse_view *out);

#endif
