/* SPDX-License-Identifier: BSD-3-Clause */
/* A watchdog for poll-mode loops: compares two samples of an lcore and formats a line if the loop
 * stalls or a handler holds the lcore too long. Lines are rate limited. */
#include "log/lcore_watchdog.h"

#include <stdio.h>

/* A hold counts once, even if several checks see it. */
static void tell_hold(struct nj_watch *w, const char *route, const char *has, unsigned lcore,
                      nj_ns held, char *line, size_t n)
{
    char others[64] = "";

    if (w->n_untold > 0)
        snprintf(others, sizeof others, " (and %u others since the last such line)", w->n_untold);
    nj_ns tenths = (held + NJ_MS / 20) / (NJ_MS / 10);
    snprintf(line, n, "the handler of %s %s lcore %u for %lu.%lu ms%s", route, has, lcore,
             tenths / 10, tenths % 10, others);
    w->n_untold = 0;
}

static bool may_tell(nj_ns *told, nj_ns now)
{
    if (*told != 0 && now - *told < NJ_WATCH_QUIET)
        return false;
    *told = now;
    return true;
}

bool nj_watch_look(struct nj_watch *w, const struct nj_watch_sight *sight, nj_ns now, char *line,
                   size_t n)
{
    if (w->moved == 0 || sight->loops != w->loops)
        w->moved = now;
    w->loops = sight->loops;

    /* This hold ended between two checks. It has its own rate limit, so that it does not suppress
     * the line of a longer one. */
    if (sight->ended && sight->ended_since != w->since) {
        if (may_tell(&w->past, now)) {
            tell_hold(w, sight->ended, "had", sight->lcore, sight->ended_ns, line, n);
            return true;
        }
        w->n_untold++;
    }
    /* It may have begun after `now` was read. */
    if (sight->route && now > sight->since && now - sight->since > NJ_WATCH_HOLD) {
        bool again = w->since == sight->since;
        w->since = sight->since;
        if (may_tell(&w->told, now)) {
            tell_hold(w, sight->route, "has had", sight->lcore, now - sight->since, line, n);
            return true;
        }
        w->n_untold += !again;
        return false;
    }
    if (!sight->route && now - w->moved > NJ_WATCH_STALL && may_tell(&w->told, now)) {
        snprintf(line, n, "lcore %u has not polled for %lu ms", sight->lcore,
                 (now - w->moved + NJ_MS / 2) / NJ_MS);
        return true;
    }
    return false;
}
