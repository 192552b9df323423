/* SPDX-License-Identifier: BSD-3-Clause */
/* A single-producer single-consumer ring of log lines. The producer drops and counts lines when the
 * ring is full. */
#include "log/lcore_log.h"

#include <stdio.h>

#include "base/relaxed_atomics.h"

void nj_lcore_log_put(struct nj_lcore_log *ring, const char *line)
{
    uint32_t put = nj_load_relaxed(&ring->n_put);

    if (put - atomic_load_explicit(&ring->n_taken, memory_order_acquire) == NJ_LCORE_LOG_LINES) {
        nj_add_relaxed(&ring->n_lost, 1);
        return;
    }
    snprintf(ring->line[put % NJ_LCORE_LOG_LINES], NJ_LCORE_LOG_BYTES, "%s", line);
    atomic_store_explicit(&ring->n_put, put + 1, memory_order_release);
}

bool nj_lcore_log_take(struct nj_lcore_log *ring, char *out, size_t n)
{
    uint32_t taken = nj_load_relaxed(&ring->n_taken);

    if (taken != atomic_load_explicit(&ring->n_put, memory_order_acquire)) {
        snprintf(out, n, "%s", ring->line[taken % NJ_LCORE_LOG_LINES]);
        atomic_store_explicit(&ring->n_taken, taken + 1, memory_order_release);
        return true;
    }
    uint32_t lost = nj_load_relaxed(&ring->n_lost);
    if (lost == ring->n_lost_reported)
        return false;
    snprintf(out, n, "%u more lines were dropped", lost - ring->n_lost_reported);
    ring->n_lost_reported = lost;
    return true;
}
