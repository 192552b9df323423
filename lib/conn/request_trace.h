/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A trace of the requests of a network: when each arrived, was answered and ended, and for how long
 * it waited for what. While there is one, the lcore asks every NJ_TRACE_PERIOD why each of these
 * requests is not faster (conn/transfers.h), and adds up the time by reason; so times of reasons
 * are multiples of about that. When a request ends, its record goes to another thread. What there
 * is no room for is counted as lost; the lcore never waits.
 *
 * While there is none, it costs one check when a request begins, and one when it ends.
 */
#pragma once

#include "base/compiler.h"
#include "base/record_ring.h"
#include "conn/transfers.h"

struct nj_conns;
struct nj_request_head;
struct nj_txn;

#define NJ_TRACE_PERIOD       (2 * NJ_MS)
#define NJ_TRACE_OPEN_MAX     4096u /* requests of a shard at a time */
#define NJ_TRACE_METHOD_BYTES 15u

/* A request: what is known when it ends, or when the trace ends before it. */
struct nj_traced_request {
    nj_ns ended_at; /* or looked at last; times are those of the shard's clock */
    nj_ns arrived_at;
    nj_ns first_byte_at; /* the first byte of the body, or the head if there is none; 0: not yet */
    struct nj_addr client, remote; /* as in struct nj_transfer */
    uint64_t n_bytes;              /* of the body that were passed to TCP */
    nj_ns throttled;               /* waits for credit that have ended: exact, not sampled */
    nj_ns waited[NJ_N_WHYS];       /* by reason */
    uint16_t status;               /* 0: no response has begun */
    uint16_t shard;
    bool is_h2, is_tls;
    bool is_running;  /* the trace ended first */
    bool is_complete; /* the response was sent to its last byte */
    bool is_path_cut;
    uint8_t n_method, n_path; /* the path is without its query */
    char method[NJ_TRACE_METHOD_BYTES], path[NJ_TRANSFER_PATH_BYTES];
    char class_of[NJ_CLASS_NAME_MAX]; /* empty: the policy does not count it, since it refused it */
};

/* Of one shard. Another thread opens it, gives it to the lcore by a command, and closes it when the
 * lcore has given it back. */
struct nj_trace;

/* `ring`: of struct nj_traced_request. NULL: no memory. */
struct nj_trace *nj_trace_new(struct nj_record_ring *ring, const struct nj_net *of);
void nj_trace_free(struct nj_trace *trace);

/* Begins a trace, which includes running requests, or ends it: those that run get their record. */
struct nj_trace_command {
    struct nj_command command;
    struct nj_trace *trace;
    /* Ends what this command has begun, once that is complete: a command may pass those before it.
     * NULL: begins. */
    const struct nj_trace_command *ends;

    uint32_t at;
};
void nj_trace_begin(struct nj_trace_command *c);

/* --- for lib/conn; on the lcore, while there is a trace --- */

void nj__trace_request_begin(struct nj_conns *cs, struct nj_txn *t,
                             const struct nj_request_head *head);
/* Before nj_txn_end(). */
void nj__trace_request_end(struct nj_conns *cs, struct nj_txn *t, bool complete);
/* Looks at some requests, if it is time. Returns when it has to be called again. */
nj_ns nj__trace_sample(struct nj_conns *cs, nj_ns now);
nj_ns nj__trace_next_at(const struct nj_trace *trace);
