/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The watchdog of one lcore: detects a stalled poll loop and names the route whose handler holds
 * the lcore. A pure state machine: the caller provides samples and the time in ns.
 */
#pragma once

#include "base/types.h"

/* A handler that holds its lcore longer than this is reported. */
#define NJ_WATCHDOG_HOLD     (1 * NJ_MS)
/* An lcore that has not polled for this time is reported; the kernel may run other work there. */
#define NJ_WATCHDOG_STALL    (1 * NJ_SEC)
/* Minimum time between two lines about one lcore. */
#define NJ_WATCHDOG_LINE_GAP (1 * NJ_SEC)

struct nj_watchdog {
    uint64_t loops;       /* at the last check */
    nj_ns progress_at;    /* when a change of `loops` was last seen; 0: no check yet */
    nj_ns logged_at;      /* time of the last line; 0: none */
    nj_ns past_logged_at; /* the same for holds that had already ended */
    nj_ns since;          /* begin of the last hold seen */
    uint32_t n_unlogged;
};

/* A sample of an lcore. */
struct nj_watchdog_sample {
    unsigned lcore;
    uint64_t loops;    /* iterations of the poll loop */
    const char *route; /* whose handler runs; NULL: none, or unknown */
    nj_ns since;       /* begin of that hold; valid with a route */
    const char *ended; /* route of a long hold that ended since the last check; or NULL */
    nj_ns ended_since, ended_ns;
};

/* Check one sample. Returns true if `line` has a report, without '\n'. `w` starts as zero. */
bool nj_watchdog_check_sample(struct nj_watchdog *w, const struct nj_watchdog_sample *sample,
                              nj_ns now, char *line, size_t n);

/* Has the lcore not polled for longer than NJ_WATCHDOG_STALL, as of the checks until now? */
bool nj_watchdog_has_stalled(const struct nj_watchdog *w, nj_ns now);
