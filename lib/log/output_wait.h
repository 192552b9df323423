/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How long the end of a process may wait for its outputs, all together: for the access log, and
 * then for standard error. The time between these waits is not counted, in which ports and the EAL
 * are closed, so that standard error is waited for even if that takes long.
 */
#pragma once

#include <stdint.h>

#include "base/types.h"

/* Milliseconds, of all waits together. */
#define NJ_OUTPUT_WAIT_MS 2000u

struct nj_output_wait {
    nj_ns taken; /* by the waits so far */
};

/* What the next wait may take, in milliseconds. */
static inline uint32_t nj_output_wait_left_ms(const struct nj_output_wait *w)
{
    const nj_ns all = NJ_OUTPUT_WAIT_MS * NJ_MS;

    return w->taken < all ? (uint32_t)((all - w->taken) / NJ_MS) : 0;
}

/* A wait took so long. */
static inline void nj_output_wait_add(struct nj_output_wait *w, nj_ns taken)
{
    w->taken += taken;
}
