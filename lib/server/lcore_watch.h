/* SPDX-License-Identifier: BSD-3-Clause */
/* Log lines about the lcores of a server: lines of their own, lcores that do not poll, abuse and
 * refusals. The supervisor. */
#pragma once

#include "log/abuse_log.h"
#include "log/lcore_watchdog.h"
#include "server/shards.h"

/* Zero-initialized. */
struct nj_lcore_watch {
    struct nj_watchdog watchdog[NJ_SHARDS_MAX];
    /* How long each lcore has not polled. Any thread reads. */
    _Atomic nj_ns unpolled[NJ_SHARDS_MAX];
    struct nj_abuse_log abuse;
    /* Of each route: foreign calls that were logged, and when the last line was. */
    uint64_t n_foreign_logged[NJ_ROUTES_MAX];
    nj_ns foreign_logged_at[NJ_ROUTES_MAX];
};

/* Log what is new. Once per tick. */
void nj__lcore_watch_tick(struct nj_lcore_watch *w, struct nj_shards *shards);
/* The first lcore that does not poll, as of the last tick; NULL: all do. */
const struct nj_lcore *nj__lcore_watch_stuck(const struct nj_lcore_watch *w,
                                             const struct nj_shards *shards);
