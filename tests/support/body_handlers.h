/* SPDX-License-Identifier: BSD-3-Clause */
/* Handlers for bodies of requests and of responses, for tests of connections. */
#pragma once

#include <stdio.h>
#include <string.h>

#include <nightjar/handler.h>

#include "support/shard_rig.h"

/* Bytes of the body of body_streams(). */
#define BODY_STREAMED 20000u

/* The response is the number of bytes that were read, or the error. */
static inline void body_reads(struct nj_request *req, struct nj_response *resp, void *arg)
{
    char some[1000], line[32];
    int64_t n, all = 0;

    (void)arg;
    while ((n = nj_request_read(req, some, sizeof some)) > 0)
        all += n;
    snprintf(line, sizeof line, "%d", (int)(n < 0 ? n : all));
    nj_response_write(resp, line, strlen(line));
}

static inline void body_reads_late(struct nj_request *req, struct nj_response *resp, void *arg)
{
    nj_sleep(NJ_SEC);
    body_reads(req, resp, arg);
}

/* The length is not known: the head is sent before the body has ended. With `arg` the response
 * fails at the end. */
static inline void body_streams(struct nj_request *req, struct nj_response *resp, void *arg)
{
    uint8_t piece[1000];

    (void)req;
    for (uint32_t at = 0; at < BODY_STREAMED; at += sizeof piece) {
        for (uint32_t i = 0; i < sizeof piece; i++)
            piece[i] = rig_byte(at + i);
        nj_response_write(resp, piece, sizeof piece);
        nj_response_flush(resp);
        nj_sleep(10 * NJ_MS);
    }
    if (arg)
        nj_response_reset(resp);
    else
        nj_response_trailer(resp, "trailer-x", "t");
}
