/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Lines for people, from an lcore to the supervisor: an lcore must not write them itself, for
 * whoever reads our standard error may be slow, and then a write waits.
 */
#ifndef NJ_LOG_LCORE_LOG_H
#define NJ_LOG_LCORE_LOG_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* More than these between two looks of the supervisor (20 ms) are counted and not kept. */
#define NJ_NOTES_MAX  16u
#define NJ_NOTE_BYTES 200u

/* One writer, one reader. Zero is a good beginning. */
struct nj_notes {
    _Atomic uint32_t n_put, n_lost; /* the writer's */
    _Atomic uint32_t n_taken;       /* the reader's */
    uint32_t n_lost_told;
    char line[NJ_NOTES_MAX][NJ_NOTE_BYTES];
};

/* Never waits. What is too long is cut. */
void nj_notes_put(struct nj_notes *notes, const char *line);
/* The next line, or how many were lost. False: there is none. */
bool nj_notes_take(struct nj_notes *notes, char *out, size_t n);

#endif
