/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Server-sent events without a stack: between two events the handler occupies a timer and a few
 * bytes, so that there can be many more of them than fibers.
 */
#include <stdio.h>
#include <stdlib.h>

#include "examples.h"

#define EVERY_NS 1000000000u

struct feed {
    unsigned long n, n_max;
};

static void over(struct nj_request *req, struct nj_response *resp, void *arg)
{
    (void)req;
    (void)resp;
    free(arg);
}

static void tick(struct nj_request *req, struct nj_response *resp, void *arg)
{
    struct feed *feed = arg;
    char line[48];
    int n = snprintf(line, sizeof line, "id: %lu\ndata: tick %lu\n\n", feed->n, feed->n);

    (void)req;
    /* if the peer does not read, its buffer is full and it misses whole events */
    nj_response_write(resp, line, (size_t)n);
    if (++feed->n < feed->n_max) {
        nj_response_on_timer(resp, EVERY_NS, tick, feed);
        return;
    }
    free(feed);
    nj_response_end(resp);
}

void events(struct nj_request *req, struct nj_response *resp, void *arg)
{
    struct feed *feed = calloc(1, sizeof *feed);

    (void)arg;
    if (!feed) {
        nj_response_status(resp, 503);
        return;
    }
    feed->n_max = query_number(req, "n", 10, 1000000);
    nj_response_header(resp, "content-type", "text/event-stream");
    nj_response_header(resp, "cache-control", "no-store");
    nj_response_flush(resp);
    nj_response_defer(resp);
    nj_response_on_cancelled(resp, over, feed);
    nj_response_on_timer(resp, 1, tick, feed);
}
