/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Pacing: one shard's tree of credit, global -> class -> client -> response, and the wheel in which
 * responses wait until they have some.
 *
 * A response asks for credit when its windows are open; it gets some, or waits: then it holds no
 * stack, no thread and no buffer, and is woken when a quantum is its own. So a wake that sends
 * nothing is an exception (the windows closed meanwhile), and is counted; its credit goes back.
 * On each level those that want are served by deficit round robin, first what they are sure of,
 * then what others leave; limits that lcores share are leased in chunks (gcra.h).
 *
 * Pure. All calls belong to the shard's lcore, but for nj_shape_shared_*.
 */
#ifndef NJ_SHAPE_SHAPER_H
#define NJ_SHAPE_SHAPER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/field.h"
#include "base/list.h"
#include "base/types.h"
#include "sched/timer_wheel.h"
#include "shape/client_table.h"
#include "shape/request_class.h"
#include "telem/counters.h"

/* What all lcores share: gates of the server and of classes, and the clients. */
struct nj_shape_shared;
struct nj_shape_shared *nj_shape_shared_new(uint32_t clients_max);
void nj_shape_shared_free(struct nj_shape_shared *shared);
struct nj_clients *nj_shape_clients(struct nj_shape_shared *shared);

/* Per class, for telemetry; written by one lcore, read by anyone. */
struct nj_class_stats {
    _Atomic uint64_t n_requests, n_refused, n_bytes, throttled_ns;
    _Atomic uint32_t n_open, n_waiting;
};

struct nj_shape_config {
    struct nj_shape_shared *shared;
    const struct nj_policy *policy;
    struct nj_counters *counters;
    uint32_t paced_max; /* paced at once, at most; one that moves counts twice */
};

struct nj_shape; /* one per shard */
struct nj_shape *nj_shape_new(const struct nj_shape_config *config, nj_ns now);
void nj_shape_free(struct nj_shape *s); /* every response has ended */

/* Of those that run so many follow a change in one run, 0.05 ms of it on the average, 0.35 ms at
 * most: 10,000 have followed after 40 runs, that is in 40 ms even where each step takes 1 ms. */
#define NJ_SHAPE_FOLLOW_MAX 256u

/* A new snapshot: the limits of the server and of classes change now, as does what is asked from
 * now on; responses that run follow in the next runs. Those of a class that is gone become the
 * default class's. While some have not followed, the one before may still be read; another one may
 * come meanwhile. */
void nj_shape_adopt(struct nj_shape *s, const struct nj_policy *policy, nj_ns now);
/* Have all followed? Then no snapshot but the one in use is touched any more. */
bool nj_shape_settled(const struct nj_shape *s);
const struct nj_policy *nj_shape_policy(const struct nj_shape *s);
const struct nj_class_stats *nj_shape_class_stats(const struct nj_shape *s, uint32_t slot);

/* A request of this class was refused: for telemetry. */
void nj_shape_refused(struct nj_shape *s, const struct nj_class *class_of);

/* A timer of the shard's wheel, and what it is for. */
struct nj_shape_timer {
    struct nj_timer timer;
    uint8_t kind;
};

/* What one response may have, from struct nj_limit. */
struct nj_paced_limit {
    uint64_t rate, spare; /* bytes per second, 0: any; and the burst, in units of gates */
    uint32_t quantum;
    bool full; /* it begins with the whole burst */
};

/* A response on its way: a body around another one, which shows only what there is credit for.
 * Embedded by its owner; the fields are shape's, but for those below "for the owner". */
struct nj_paced {
    struct nj_body body; /* what HTTP/2 is given */
    struct nj_shape *shape;
    struct nj_body *inner;
    struct nj_paced_group *group; /* of its client in its class, on this shard */
    struct nj_list all;           /* of the shard: `all`, or `behind` after a change */
    struct nj_list want;          /* among those of the group that wait for shared credit */
    struct nj_list grant;         /* among those of the shard that have credit in hand */
    struct nj_shape_timer timer;  /* waiting for its own limit */
    uint64_t tat;                 /* of its own limit, as in gcra.h; 0: not begun */
    nj_ns refused_at;
    uint32_t granted;     /* bytes it may send and has not */
    uint32_t granted_own; /* how many of these its own limit was charged for */
    uint32_t granted_by;  /* `changes` of the group that was charged for them; 0: none was */
    uint32_t owed;        /* its last turn was cut short by so much */
    uint8_t state;
    bool limited; /* something on its way to the root has a limit */
    bool woken;   /* for the credit in hand, of which nothing is used */
    bool starved; /* its source had nothing when it had credit: it keeps its turn */
    bool has_own; /* `own` counts, and not what its class says of one response */
    struct nj_paced_limit own;

    /* for the owner */
    uint64_t n_bytes;    /* that went */
    nj_ns throttled_ns;  /* waited for credit, all in all */
    nj_ns first_byte_at; /* 0: none has gone */
};

/*
 * Begin: this response is of that class (of the snapshot in use) and client. The client is held by
 * the caller for longer. Then nj_paced_wrap() makes what HTTP/2 is given of the body; the inner one
 * is closed with it; of none it makes none. nj_paced_end() when the stream is over, wrapped or not;
 * the body has been closed before.
 * Returns false when there is no memory for another client on this shard (503).
 */
bool nj_paced_begin(struct nj_shape *s, struct nj_paced *f, const struct nj_class *class_of,
                    struct nj_client *client, nj_ns now);
struct nj_body *nj_paced_wrap(struct nj_paced *f, struct nj_body *inner);
void nj_paced_end(struct nj_paced *f);
/* Is it of that class of the snapshot in use? */
bool nj_paced_is_of(const struct nj_paced *f, const struct nj_class *class_of);
/* Before it is wrapped: it is of that class and client from here on. A limit of its own stays.
 * False: no memory, and nothing has changed. */
bool nj_paced_move(struct nj_paced *f, const struct nj_class *class_of, struct nj_client *client);
/* A limit of its own in place of what its class says of one response, and of `rate_after`; NULL:
 * its class's again. At any time between begin and end. */
void nj_paced_set_limit(struct nj_paced *f, const struct nj_limit *limit);
/* Does it wait for credit? Then it is not the peer who is slow. */
bool nj_paced_waits(const struct nj_paced *f);

/* Give out what has become due; `wake` is called with body->waiter of each response that has credit
 * now; it must not ask the body at once. What those of the last call did not send goes back. Also
 * sets the time for what is asked until the next call. Returns how many were woken. Once per step,
 * before connections are eaten. */
uint32_t nj_shape_run(struct nj_shape *s, nj_ns now, void (*wake)(void *ctx, void *waiter),
                      void *ctx);
/* Write the gauges where other threads read them, as nj_shape_run() does at its end. */
void nj_shape_publish(struct nj_shape *s);
/* Nothing is due before; the time of the last call when it should be called again at once. */
nj_ns nj_shape_next(const struct nj_shape *s);

#endif
