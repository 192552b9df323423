/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A trace of requests for a client of the management listener: a line of JSON when
 * all lcores record, one for each request, and at the end one that says how many were dropped. One
 * at a time. The management thread, except new and free.
 */
#pragma once

#include "mgmt/lcore_taps.h"

#define NJ__TRACE_REQUESTS     100000u /* by default */
#define NJ__TRACE_REQUESTS_MAX 10000000u

struct nj_mgmt_trace;

/* `view` outlives it. NULL: no memory. Main thread. */
struct nj_mgmt_trace *nj_mgmt_trace_new(const struct nj_mgmt_view *view);
/* When the lcores have ended. */
void nj_mgmt_trace_free(struct nj_mgmt_trace *t);

struct nj__trace_options {
    struct nj_net of; /* the client, or the address of the connection; 0 bits: any */
    uint32_t seconds;
    uint64_t n_requests;
};
/* The status of HTTP: 200, with *stream; else a reason. */
unsigned nj__trace_begin(struct nj_mgmt_trace *t, const struct nj__trace_options *options,
                         struct nj__mgmt_stream *stream, const char **why);
bool nj__trace_end(struct nj_mgmt_trace *t);
/* nj__taps_tick() */
bool nj__trace_tick(struct nj_mgmt_trace *t);
