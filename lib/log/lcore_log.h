/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A ring of log lines from an lcore to the supervisor thread, which writes them. An lcore must not
 * write to standard error itself: the write blocks if its reader is slow.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Capacity. The supervisor empties the ring every 20 ms; excess lines are dropped and counted. */
#define NJ_LCORE_LOG_LINES 16u
#define NJ_LCORE_LOG_BYTES 200u

/* One writer, one reader. Zero-initialized. */
struct nj_lcore_log {
    _Atomic uint32_t n_put, n_lost; /* written by the lcore */
    _Atomic uint32_t n_taken;       /* written by the reader */
    uint32_t n_lost_reported;
    char line[NJ_LCORE_LOG_LINES][NJ_LCORE_LOG_BYTES];
};

/* Never blocks. A line of more than NJ_LCORE_LOG_BYTES - 1 bytes is truncated. */
void nj_lcore_log_put(struct nj_lcore_log *ring, const char *line);
/* Take the next line, or a line with the count of dropped ones. Returns false if there is none. */
bool nj_lcore_log_take(struct nj_lcore_log *ring, char *out, size_t n);
