/* SPDX-License-Identifier: BSD-3-Clause */
/* A counter in the text format of Prometheus. Each lcore runs the handler, so the counter is
 * atomic. A program with counters of its own answers in the same way. */
#include <stdatomic.h>
#include <stdio.h>

#include "examples.h"

static atomic_ulong scrapes;

void metrics(struct nj_request *req, struct nj_response *resp, void *arg)
{
    char text[160];
    int n = snprintf(text, sizeof text,
                     "# HELP nightjar_examples_scrapes_total Requests for this page.\n"
                     "# TYPE nightjar_examples_scrapes_total counter\n"
                     "nightjar_examples_scrapes_total %lu\n",
                     atomic_fetch_add_explicit(&scrapes, 1, memory_order_relaxed) + 1);

    (void)req;
    (void)arg;
    nj_response_header(resp, "content-type", "text/plain; version=0.0.4; charset=utf-8");
    nj_response_write(resp, text, (size_t)n);
}
