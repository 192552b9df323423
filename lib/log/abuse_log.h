/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Log lines about protection against abuse, and about refusals: at most one line per reason and
 * second for the whole server, with the count since the last line and the client concerned. One
 * thread.
 */
#pragma once

#include <stdbool.h>

#include "conn/abuse_reason_counts.h"
#include "log/log.h"
#include "telem/count.h"

#define NJ_ABUSE_LINE_BYTES 256u

struct nj_abuse_line {
    enum nj_log level;
    char text[NJ_ABUSE_LINE_BYTES];
};

/* Zero-initialized. */
struct nj_abuse_log {
    uint64_t n_logged_all;              /* counts of all reasons that were logged */
    uint64_t n_logged[NJ_COUNTERS_MAX]; /* of each reason */
    nj_ns logged_at[NJ_COUNTERS_MAX];
};

/* Format the next line that is due. Call until it returns false. `of` are the records of `n`
 * shards. */
bool nj_abuse_log_next(struct nj_abuse_log *log, const struct nj_abuse *const *of, uint32_t n,
                       nj_ns now, struct nj_abuse_line *line);

/* Sum the counts of a reason over all shards. out->client is the client with the most counts of a
 * shard in the latest second with any. out->others: other clients were counted in that second, too.
 * Returns false if there are no counts, or all records are being written. */
bool nj_abuse_sum(const struct nj_abuse *const *of, uint32_t n, nj_counter reason,
                  struct nj_abuse_view *out);
