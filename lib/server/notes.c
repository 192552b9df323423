/* SPDX-License-Identifier: BSD-3-Clause */
#include "server/notes.h"

#include <stdio.h>

void nj_notes_put(struct nj_notes *notes, const char *line)
{
    uint32_t put = atomic_load_explicit(&notes->n_put, memory_order_relaxed);

    if (put - atomic_load_explicit(&notes->n_taken, memory_order_acquire) == NJ_NOTES_MAX) {
        atomic_fetch_add_explicit(&notes->n_lost, 1, memory_order_relaxed);
        return;
    }
    snprintf(notes->line[put % NJ_NOTES_MAX], NJ_NOTE_BYTES, "%s", line);
    atomic_store_explicit(&notes->n_put, put + 1, memory_order_release);
}

bool nj_notes_take(struct nj_notes *notes, char *out, size_t n)
{
    uint32_t taken = atomic_load_explicit(&notes->n_taken, memory_order_relaxed);

    if (taken != atomic_load_explicit(&notes->n_put, memory_order_acquire)) {
        snprintf(out, n, "%s", notes->line[taken % NJ_NOTES_MAX]);
        atomic_store_explicit(&notes->n_taken, taken + 1, memory_order_release);
        return true;
    }
    uint32_t lost = atomic_load_explicit(&notes->n_lost, memory_order_relaxed);
    if (lost == notes->n_lost_told)
        return false;
    snprintf(out, n, "%u more lines were not kept", lost - notes->n_lost_told);
    notes->n_lost_told = lost;
    return true;
}
