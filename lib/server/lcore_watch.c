/* SPDX-License-Identifier: BSD-3-Clause */
#include "server/lcore_watch.h"

#include <time.h>

#include "base/relaxed_atomics.h"
#include "log/log.h"
#include "telem/counters_packet.h"
#include "threads/os_clock.h"

/* Logs the messages of an lcore. */
static void log_lines(struct nj_lcore_log *log)
{
    char line[NJ_LCORE_LOG_BYTES];

    for (uint32_t k = 0; k <= NJ_LCORE_LOG_LINES && nj_lcore_log_take(log, line, sizeof line); k++)
        nj_log(NJ_LEVEL_WARNING, "%s", line);
}

static void log_abuse(struct nj_lcore_watch *w, const struct nj_shards *shards)
{
    const struct nj_abuse *of[NJ_SHARDS_MAX];
    struct nj_abuse_line line;
    nj_ns now = nj_os_clock_gettime_ns(CLOCK_MONOTONIC);

    for (uint32_t i = 0; i < shards->n; i++)
        of[i] = &shards->shard[i]->conns.abuse;
    while (nj_abuse_log_next(&w->abuse, of, shards->n, now, &line))
        nj_log(line.level, "%s", line.text);
}

/* Calls that a handler's author did not mean: at most one line per route and minute. */
static void log_foreign_calls(struct nj_lcore_watch *w, const struct nj_shards *shards)
{
    const struct nj_routes *routes = shards->n > 0 ? shards->shard[0]->conns.cfg->routes : NULL;
    nj_ns now = nj_os_clock_gettime_ns(CLOCK_MONOTONIC);

    for (uint32_t r = 0; r < nj_routes_count(routes); r++) {
        uint64_t n = 0;
        for (uint32_t i = 0; i < shards->n; i++)
            n += __atomic_load_n(&shards->shard[i]->conns.handlers.classes[r].n_foreign_calls,
                                 __ATOMIC_RELAXED);
        if (n == w->n_foreign_logged[r] ||
            (w->n_foreign_logged[r] > 0 && now - w->foreign_logged_at[r] < 60 * NJ_SEC))
            continue;
        nj_log(NJ_LEVEL_WARNING,
               "the handler of %s: %lu calls with its request or response came from another thread "
               "than the handler's; they did nothing (NJ_ERR_INVALID)",
               nj_routes_name(routes, r), n - w->n_foreign_logged[r]);
        w->n_foreign_logged[r] = n;
        w->foreign_logged_at[r] = now;
    }
}

void nj__lcore_watch_tick(struct nj_lcore_watch *w, struct nj_shards *shards)
{
    char line[256];

    for (uint32_t i = 0; i < shards->n; i++) {
        log_lines(&shards->log[i]);
        const struct nj_counters *c = &shards->shard[i]->counters;
        struct nj_watchdog_sample sample = {
            .lcore = shards->lcore[i].id,
            .loops = nj_counter_read(c, NJ_C_loops_busy) + nj_counter_read(c, NJ_C_loops_idle),
        };
        struct nj_ewyk *ewyk = shards->shard[i]->conns.handlers.ewyk;
        struct nj_ewyk_hold hold;
        struct nj_ewyk_long_hold past;
        if (ewyk && nj_ewyk_current_core_holder(ewyk, &hold)) {
            sample.route = hold.class_of->name;
            sample.since = hold.since;
        }
        if (ewyk && nj_ewyk_pop_long_hold(ewyk, &past)) {
            sample.ended = past.hold.class_of->name;
            sample.ended_since = past.hold.since;
            sample.ended_ns = past.ns;
        }
        nj_ns now = nj_tsc_clock_now(&shards->clock);
        if (nj_watchdog_check_sample(&w->watchdog[i], &sample, now, line, sizeof line))
            nj_log(NJ_LEVEL_WARNING, "%s", line);
        nj_store_relaxed(&w->unpolled[i], now - nj_min_u64(w->watchdog[i].progress_at, now));
    }
    log_abuse(w, shards);
    log_foreign_calls(w, shards);
}

const struct nj_lcore *nj__lcore_watch_stuck(const struct nj_lcore_watch *w,
                                             const struct nj_shards *shards)
{
    nj_ns now = nj_tsc_clock_now(&shards->clock);

    for (uint32_t i = 0; i < shards->n; i++)
        if (nj_watchdog_has_stalled(&w->watchdog[i], now))
            return &shards->lcore[i];
    return NULL;
}
