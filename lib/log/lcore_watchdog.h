/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The watchdog of one lcore: sees that it comes round, and names the route that keeps it from that.
 * A machine: somebody else looks and knows the time.
 */
#ifndef NJ_LOG_LCORE_WATCHDOG_H
#define NJ_LOG_LCORE_WATCHDOG_H

#include "base/types.h"

/* A task may have its lcore so long without being named. */
#define NJ_WATCH_HOLD  (1 * NJ_MS)
/* And an lcore may be away so long, whoever has it: the kernel may run others there. */
#define NJ_WATCH_STALL (1 * NJ_SEC)
/* Between two lines about one lcore. */
#define NJ_WATCH_QUIET (1 * NJ_SEC)

struct nj_watch {
    uint64_t loops; /* when last looked at */
    nj_ns moved;    /* when that had changed; 0: never looked */
    nj_ns told;     /* when the last line was written; 0: never */
    nj_ns past;     /* the same, of lines about holds that were over */
    nj_ns since;    /* the hold that was seen last */
    uint32_t n_untold;
};

/* What is to be seen of an lcore. */
struct nj_watch_sight {
    unsigned lcore;
    uint64_t loops;    /* how often it came round */
    const char *route; /* that has it; NULL: none, or not known */
    nj_ns since;       /* when that began; with a route */
    const char *ended; /* a route that had it for too long since the last look; or NULL */
    nj_ns ended_since, ended_ns;
};

/* Look. True: `line` says what is wrong, without an end. Zero is a good beginning. */
bool nj_watch_look(struct nj_watch *w, const struct nj_watch_sight *sight, nj_ns now, char *line,
                   size_t n);

#endif
