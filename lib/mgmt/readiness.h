/* SPDX-License-Identifier: BSD-3-Clause */
/* Does the server take requests? /health and /ready. The management thread. */
#pragma once

#include <stdio.h>

#include "base/limits.h"
#include "mgmt/view.h"

/* What is known about the polling of each lcore. Zero-initialized. */
struct nj_mgmt_polls {
    struct {
        uint64_t loops;
        nj_ns asked_at; /* since then it was to poll, and has not; 0: it has */
    } of[NJ_SHARDS_MAX];
};

/* Does the supervisor run? */
bool nj__mgmt_is_healthy(const struct nj_mgmt_view *v);

/* Write a line for each reason why the server should get no requests. Returns the number of lines.
 * Wakes lcores that sleep, and waits at most `stall` until they have polled; not again for an lcore
 * that has not since. */
uint32_t nj__mgmt_write_reasons(const struct nj_mgmt_view *v, struct nj_mgmt_polls *polls,
                                nj_ns stall, FILE *out);
