/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Traffic shaping of one shard: a tree of credit, global -> class -> client -> response, and a
 * timer wheel for responses that wait.
 *
 * A response requests credit when its flow-control windows are open. Without credit it waits, holds
 * no stack, thread or buffer, and is woken when a quantum is granted. A wake that sends nothing
 * (the windows closed meanwhile) is rare and counted; its credit is returned. Each level is served
 * by deficit round robin, first up to the guaranteed rates, then beyond. Limits common to lcores
 * are leased in chunks (gcra.h).
 *
 * Pure. All calls belong to the shard's lcore, except nj_shape_shared_*.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/body_source.h"
#include "base/list.h"
#include "base/timer_wheel.h"
#include "base/types.h"
#include "shape/client_table.h"
#include "shape/request_policy.h"
#include "telem/count.h"

/* State of all lcores: GCRAs of the server and of classes, and the clients. */
struct nj_shape_shared;
struct nj_shape_shared *nj_shape_shared_new(uint32_t clients_max);
void nj_shape_shared_free(struct nj_shape_shared *shared);
struct nj_clients *nj_shape_clients(struct nj_shape_shared *shared);

/* Per class, for telemetry. Written by one lcore, read by any thread. */
struct nj_class_stats {
    _Atomic uint64_t n_requests, n_refused, n_bytes, throttled_ns;
    _Atomic uint32_t n_open, n_waiting;
};

struct nj_shape_config {
    struct nj_shape_shared *shared;
    const struct nj_policy *policy;
    struct nj_counters *counters;
    uint32_t paced_max; /* most paced responses at once; one that moves counts twice */
};

struct nj_paced;
struct nj_shape; /* one per shard */
struct nj_shape *nj_shape_new(const struct nj_shape_config *config, nj_ns now);
void nj_shape_free(struct nj_shape *s); /* every response has ended */

/* Responses moved to a new policy per run: 0.05 ms on average, at most 0.35 ms. 10,000 take 40
 * runs, which is 40 ms even if a step takes 1 ms. */
#define NJ_SHAPE_MIGRATE_MAX 256u

/* Adopts a new policy. Limits of the server and of classes change at once, as do those of new
 * requests. Responses under way are moved to it in the next runs; those of a removed class get the
 * default class. The former policy may be read until all are moved. Another policy may be adopted
 * meanwhile. */
void nj_shape_set_policy(struct nj_shape *s, const struct nj_policy *policy, nj_ns now);
/* Have all responses been moved? Then former policies may be freed. */
bool nj_shape_is_migrated(const struct nj_shape *s);
const struct nj_policy *nj_shape_policy(const struct nj_shape *s);
const struct nj_class_stats *nj_shape_class_stats(const struct nj_shape *s, uint32_t slot);

/* The class of a response in the current policy. Only when nj_shape_is_migrated(). */
const struct nj_class *nj_paced_class(const struct nj_paced *f);

/* Counts a refused request of this class, for telemetry. */
void nj_shape_count_refused(struct nj_shape *s, const struct nj_class *class_of);

/* A timer of the shard's wheel, with its kind. */
struct nj_shape_timer {
    struct nj_timer timer;
    uint8_t kind;
};

/* The limit of one response, derived from struct nj_limit. */
struct nj_paced_limit {
    uint64_t rate, burst_units; /* bytes per second, 0: no limit; the burst, in units of gcra.h */
    uint32_t quantum;
    bool full_burst; /* starts with the whole burst */
};

/* A paced response: a body around another one that shows only bytes with credit. Embedded by its
 * owner. The fields are private to lib/shape, except the last ones. */
struct nj_paced {
    struct nj_body body; /* the body for the framing */
    struct nj_shape *shape;
    struct nj_body *inner;
    struct nj_paced_group *group; /* its client in its class, on this shard */
    struct nj_list all;   /* member of the shard's `all`, or of `unmigrated` after a change of
                             policy */
    struct nj_list want;  /* member of the group's list of responses waiting for common
                             credit */
    struct nj_list grant; /* member of the shard's list of responses with credit in hand */
    struct nj_shape_timer timer; /* waits for the response's own limit */
    uint64_t tat;                /* theoretical arrival time of its own limit (gcra.h); 0: not
                                    started */
    nj_ns wait_began_at;
    uint32_t granted;            /* bytes granted and not sent yet */
    uint32_t granted_own;        /* of these, bytes charged to its own limit */
    uint32_t granted_limits_gen; /* `changes` of the group when it was charged; 0: it was not */
    uint32_t carried_bytes;      /* bytes missing from its last quantum */
    uint8_t state;
    bool limited;       /* some limit applies, its own or one on the path to the root */
    bool woken;         /* woken for the credit in hand, and none of it used */
    bool source_empty;  /* the inner body had no bytes when there was credit: keeps its place in the
                         * list
                         */
    bool has_own_limit; /* `own` applies instead of the limit of its class */
    struct nj_paced_limit own;

    /* for the owner */
    uint64_t n_bytes;    /* sent */
    nj_ns throttled_ns;  /* total time waited for credit */
    nj_ns first_byte_at; /* 0: none sent */
};

/*
 * nj_paced_begin() starts a response of a class (of the policy in use) and a client, which the
 * caller keeps referenced until the end. Returns false when no group can be allocated (503).
 *
 * nj_paced_wrap() returns the body for the framing, which closes `inner` with it; NULL for NULL.
 * nj_paced_end() is called when the stream has ended, wrapped or not, and the body is closed.
 */
bool nj_paced_begin(struct nj_shape *s, struct nj_paced *f, const struct nj_class *class_of,
                    struct nj_client *client, nj_ns now);
struct nj_body *nj_paced_wrap(struct nj_paced *f, struct nj_body *inner);
void nj_paced_end(struct nj_paced *f);
/* Is the response of that class of the policy in use? */
bool nj_paced_is_of_class(const struct nj_paced *f, const struct nj_class *class_of);
/* Changes class and client before the response is wrapped. A limit of its own is kept. Returns
 * false without memory; nothing has changed then. */
bool nj_paced_set_class(struct nj_paced *f, const struct nj_class *class_of,
                        struct nj_client *client);
/* Sets a limit of its own, in place of the class's limit of one response and of `rate_after`. NULL:
 * the class's again. At any time between begin and end. */
void nj_paced_set_limit(struct nj_paced *f, const struct nj_limit *limit);
/* Does the response wait for credit? Then the peer is not at fault. */
bool nj_paced_is_waiting(const struct nj_paced *f);
/* Whose rate it waits for. The limit of one response, be it the class's or its own, counts as the
 * class's. When several limits are used up: the one that is due last. */
enum nj_paced_limiter {
    NJ_PACED_BY_NOTHING, /* it does not wait for credit */
    NJ_PACED_BY_CLASS,
    NJ_PACED_BY_CLIENT,
    NJ_PACED_BY_SERVER,
};
enum nj_paced_limiter nj_paced_limited_by(const struct nj_paced *f);
/* Bytes of the wrapped body that were not sent yet; NJ_BODY_LEN_UNKNOWN until its end is known. 0
 * without a wrapped body. */
uint64_t nj_paced_bytes_left(const struct nj_paced *f);

/* Distributes credit that is due. Calls `wake` with body->waiter of each response that got credit;
 * it must not peek at the body at once. Unsent credit of the last run is returned. Sets the time
 * used until the next run. Returns the number of wakes. Once per step, before connections are
 * processed. */
uint32_t nj_shape_run(struct nj_shape *s, nj_ns now, void (*wake)(void *ctx, void *waiter),
                      void *ctx);
/* Stores the gauges that other threads read, like nj_shape_run(). */
void nj_shape_publish(struct nj_shape *s);
/* Nothing is due before this time; the time of the last run: call again at once. */
nj_ns nj_shape_next_at(const struct nj_shape *s);
