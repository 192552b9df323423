/* SPDX-License-Identifier: BSD-3-Clause */
/* A single-producer single-consumer ring of log lines. The producer drops and counts lines when the
 * ring is full. */
#include "log/lcore_log.h"

#include <stdio.h>

#include "base/atomics.h"

void nj_notes_put(struct nj_notes *notes, const char *line)
{
    uint32_t put = nj_load_relaxed(&notes->n_put);

    if (put - atomic_load_explicit(&notes->n_taken, memory_order_acquire) == NJ_NOTES_MAX) {
        nj_add_relaxed(&notes->n_lost, 1);
        return;
    }
    snprintf(notes->line[put % NJ_NOTES_MAX], NJ_NOTE_BYTES, "%s", line);
    atomic_store_explicit(&notes->n_put, put + 1, memory_order_release);
}

bool nj_notes_take(struct nj_notes *notes, char *out, size_t n)
{
    uint32_t taken = nj_load_relaxed(&notes->n_taken);

    if (taken != atomic_load_explicit(&notes->n_put, memory_order_acquire)) {
        snprintf(out, n, "%s", notes->line[taken % NJ_NOTES_MAX]);
        atomic_store_explicit(&notes->n_taken, taken + 1, memory_order_release);
        return true;
    }
    uint32_t lost = nj_load_relaxed(&notes->n_lost);
    if (lost == notes->n_lost_told)
        return false;
    snprintf(out, n, "%u more lines were dropped", lost - notes->n_lost_told);
    notes->n_lost_told = lost;
    return true;
}
