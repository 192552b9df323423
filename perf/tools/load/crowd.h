/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The clients of a thread: connections, on a shard of its own or over sockets of the kernel
 * (transport.h), and their requests. Only that thread, an lcore if there is a shard, calls these
 * functions. All threads may read counts and latencies.
 */
#pragma once

#include <stdatomic.h>

#include "base/list.h"
#include "base/prng.h"
#include "framing.h"
#include "fine_histogram.h"
#include "options.h"
#include "tls.h"
#include "shard/shard.h"

enum load_phase {
    LOAD_OPENING,   /* connections only */
    LOAD_WARMING,   /* requests, not measured */
    LOAD_MEASURING, /* requests that are due from now on are measured */
    LOAD_FINISHING, /* no new ones */
    LOAD_CLOSING,   /* connections are closed */
    LOAD_OVER,
};

/* Of the whole run. The last seven are of connections. Not opened: refused (over a shard also: no
 * answer), unreachable, tls_failed (the handshake). Opened, and then ended by the server: closed,
 * or cut by a reset; or by this client for a fault of the server: broken. */
/* clang-format off */
#define LOAD_COUNTS(X)                                                                             \
    X(asked) X(done) X(reset) X(timeout) X(lost)                                                   \
    X(status_1) X(status_2) X(status_3) X(status_4) X(status_5)                                    \
    X(body_bytes) X(upload_bytes)                                                                  \
    X(connected) X(refused) X(unreachable) X(tls_failed) X(closed) X(cut) X(broken)
/* clang-format on */

#define LOAD_FIELD(name) _Atomic uint64_t name;
struct load_counts {
    LOAD_COUNTS(LOAD_FIELD)
};
#undef LOAD_FIELD

struct client;
struct load_transport;
struct load_sockets;

struct crowd {
    struct fine_histogram total, first; /* of measured requests: to the last byte, to the first */
    struct load_counts counts;
    _Atomic uint32_t n_open, n_under_way; /* connections; requests */
    _Atomic uint64_t n_unsent;            /* due and not sent yet */
    _Atomic nj_ns busy, idle;
    _Atomic uint64_t retransmits; /* of sockets; a shard has a counter */
    const char *_Atomic fault;    /* the last error of a connection, or NULL */

    const struct load_options *o;
    struct load_plan plan; /* its own copy, with its own callback */
    const struct load_transport *net;
    struct nj_shard *shard;       /* NULL: sockets */
    struct load_sockets *sockets; /* NULL: a shard */
    uint32_t to_next;             /* address of the server that is tried next */
    enum load_phase phase;
    nj_ns now;
    uint32_t n_wanted;
    uint64_t budget;    /* requests that may still be sent; UINT64_MAX: any number */
    double interval_ns; /* open loop: interval of this lcore's requests; 0: closed loop */
    double due;         /* due time of the next one */
    uint32_t in_flight; /* closed loop in turn: this lcore's requests at a time, or 0 */
    nj_ns measure_from, measure_to, swept_at, retry_at;
    struct nj_prng prng;
    uint32_t next_path; /* with --in-turn */
    uint32_t ports;     /* see active.h */
    uint32_t sweep_next;
    struct client *clients;
    struct nj_list opening; /* to be opened */
    struct nj_list free;    /* may send a request, if connections take turns */
    struct nj_list behind;  /* with bytes that the transport did not accept */
    uint32_t n_opening;
    struct load_out out;
    struct load_tls *tls; /* NULL: cleartext */
    uint8_t *sealed;      /* records of `out` */
};

/* Share `index` of `n`. `shard` NULL: sockets of the kernel. False: no memory. */
bool crowd_init(struct crowd *c, const struct load_options *o, struct nj_shard *shard,
                uint32_t index, uint32_t n);
void crowd_fini(struct crowd *c, nj_ns now);

/* Runs before each step of the transport. Returns the amount of work done. */
uint32_t crowd_run(struct crowd *c, enum load_phase phase, nj_ns now);
