/* SPDX-License-Identifier: BSD-3-Clause */
/* A watchdog for poll-mode loops: compares two samples of an lcore and formats a line if the loop
 * stalls or a handler holds the lcore too long. Lines are rate limited. */
#include "log/lcore_watchdog.h"

#include <stdio.h>

/* A hold counts once, even if several checks see it. */
static void format_hold(struct nj_watchdog *w, const char *route, const char *has, unsigned lcore,
                        nj_ns held, char *line, size_t n)
{
    char others[64] = "";

    if (w->n_unlogged > 0)
        snprintf(others, sizeof others, " (and %u others since the last such line)", w->n_unlogged);
    nj_ns tenths = (held + NJ_MS / 20) / (NJ_MS / 10);
    snprintf(line, n, "the handler of %s %s lcore %u for %lu.%lu ms%s", route, has, lcore,
             tenths / 10, tenths % 10, others);
    w->n_unlogged = 0;
}

static bool is_line_due(nj_ns *logged_at, nj_ns now)
{
    if (*logged_at != 0 && now - *logged_at < NJ_WATCHDOG_LINE_GAP)
        return false;
    *logged_at = now;
    return true;
}

bool nj_watchdog_check_sample(struct nj_watchdog *w, const struct nj_watchdog_sample *sample,
                              nj_ns now, char *line, size_t n)
{
    if (w->progress_at == 0 || sample->loops != w->loops)
        w->progress_at = now;
    w->loops = sample->loops;

    /* This hold ended between two checks. It has its own rate limit, so that it does not suppress
     * the line of a longer one. */
    if (sample->ended && sample->ended_since != w->since) {
        if (is_line_due(&w->past_logged_at, now)) {
            format_hold(w, sample->ended, "had", sample->lcore, sample->ended_ns, line, n);
            return true;
        }
        w->n_unlogged++;
    }
    /* It may have begun after `now` was read. */
    if (sample->route && now > sample->since && now - sample->since > NJ_WATCHDOG_HOLD) {
        bool again = w->since == sample->since;
        w->since = sample->since;
        if (is_line_due(&w->logged_at, now)) {
            format_hold(w, sample->route, "has had", sample->lcore, now - sample->since, line, n);
            return true;
        }
        w->n_unlogged += !again;
        return false;
    }
    if (!sample->route && nj_watchdog_has_stalled(w, now) && is_line_due(&w->logged_at, now)) {
        snprintf(line, n, "lcore %u has not polled for %lu ms", sample->lcore,
                 (now - w->progress_at + NJ_MS / 2) / NJ_MS);
        return true;
    }
    return false;
}

bool nj_watchdog_has_stalled(const struct nj_watchdog *w, nj_ns now)
{
    return w->progress_at != 0 && now > w->progress_at && now - w->progress_at > NJ_WATCHDOG_STALL;
}
