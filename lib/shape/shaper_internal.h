/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Internals of the shaper of one shard. Hierarchical deficit round robin (DRR) with leases from
 * GCRAs. All calls belong to the shard's lcore. Each file calls only those before it in this list:
 * gcra.c, client_table.c, quantum.c, credit_lease.c, drr_tree.c, client_response_group.c,
 * paced_body.c, shaper.c.
 */
#pragma once

#include "base/compiler.h"
#include "base/pool.h"
#include "shape/shaper.h"
#include "telem/count.h"

/* Time covered by a lease of a common limit, for all lcores together; each lcore leases its share.
 * Longer than a step and a tick of the wheel, so that a client slightly late keeps its place; short
 * compared to the burst, 50 ms. An lcore with longer steps leases up to MAX. */
#define NJ__LEASE_NS        (4 * NJ_MS)
#define NJ__LEASE_NS_MAX    (20 * NJ_MS)
/* How long the deficit of a node without demand is kept, and how long after the last wait a limit
 * counts as contended. An uncontended limit may be leased from at once. */
#define NJ__DEFICIT_KEPT_NS (8 * NJ_MS)
#define NJ__CONTENDED_NS    (16 * NJ_MS)
/* How long the next round waits for a child that is sending its grant. It may need several steps
 * until ACKs arrive. A child that never returns costs its siblings only this time, while their
 * credit accumulates. */
#define NJ__IN_SERVICE_NS   (1 * NJ_MS)
/* A client without demand for this long leaves its share of the limit to other lcores. */
#define NJ__LINGER_NS       (50 * NJ_MS)
/* The unit of shares between lcores: 1. */
#define NJ__SHARE_ONE       1024
/* Least bytes added per round: a child in debt by a whole quantum is passed over at most 46 times.
 */
#define NJ__TURN_MIN_BYTES  64

enum nj__node_state {
    NJ__NODE_IDLE,       /* no demand */
    NJ__NODE_READY,      /* in the parent's round robin */
    NJ__NODE_ROUND_DONE, /* its children had their round; scheduled again in the next run */
    NJ__NODE_NO_CREDIT,  /* without credit; requests a lease in the next run */
    NJ__NODE_LEASED,     /* has a lease that is due later */
};

enum { NJ__LEVEL_ROOT, NJ__LEVEL_CLASS, NJ__LEVEL_GROUP };

struct nj__node {
    struct nj__node *parent;
    struct nj_gcra *rate_gcra; /* source of leases, common to all lcores */
    uint64_t rate, burst;      /* the ceiling; rate 0: none */
    uint64_t slowest_rate;     /* the lowest ceiling from here to the root; 0: none */
    uint64_t share_bytes;      /* 16 ms of the rate, divided between waiting responses */
    struct nj_list link; /* member of the parent's `ready_list` or `in_service`, or of the shard's
                            `round_done` or `no_credit` */
    struct nj_list ready_list; /* children in the round robin: nodes, or responses of a group */
    struct nj_list in_service; /* children that are sending their grant */
    nj_ns in_service_until;    /* end of the wait for them */
    /* Member of the shard's `surplus_list`: has unused credit and no demand. */
    struct nj_list surplus_list;
    uint32_t n_ready;   /* nodes in `ready_list` */
    uint32_t n_waiting; /* waiting responses in the subtree */
    uint32_t n_backlog; /* n_waiting at the first grant of `backlog_run` */
    uint64_t backlog_run;
    uint64_t credit; /* leased, due and not granted yet */
    uint64_t leased; /* LEASED: bytes due at `lease_due` */
    nj_ns lease_due;

    /* Deficit round robin: state of the node as a child. */
    int64_t deficit;      /* bytes left in its round; negative: a debt */
    int64_t turn_quantum; /* bytes added for its last round */
    uint64_t turn_round;  /* the parent's round in which they were added */
    nj_ns unready_at;
    /* Deficit round robin: state of the node as a parent. */
    uint64_t round;
    uint64_t round_done;  /* the last run in which a child had its round */
    uint64_t weighed_run; /* the run in which the next two were computed */
    uint64_t round_bytes, round_weight;
    nj_ns contended_until;

    uint8_t state, level;
};

struct nj__class {
    struct nj__node node;
    const struct nj_class *policy; /* NULL: the slot is free */
    uint32_t slot_gen;             /* of the class; a different one restarts stats */
    bool is_retired;               /* removed from the policy; its responses move to the default
                                class */
    uint64_t weight;
    struct nj_paced_limit own; /* limit of one response */

    /* Schedulable clients, minus the parts that other lcores serve, in NJ__SHARE_ONE. */
    int64_t wanted;
    int64_t peak; /* the maximum since it was published */
    int64_t published;
    struct nj_class_stats stats;
};

struct nj_paced_group {
    struct nj__node node;
    struct nj__class *class_of;
    struct nj_client *client;
    struct nj_list bucket;
    struct nj_shape_timer lease_timer, linger_timer;
    uint32_t n_responses, n_waits;
    uint32_t limits_gen;            /* `limits_gen` of the shard when it was updated */
    uint32_t slot_gen;              /* of the class to which its responses belong */
    int32_t share;                  /* READY: its part of the class's `wanted` */
    bool counted;                   /* included in the client's n_lcores */
    uint64_t n_bytes, throttled_ns; /* not yet added to the client */
    nj_ns flushed_at;
};

enum nj__timer_kind { NJ__TIMER_OWN, NJ__TIMER_LEASE, NJ__TIMER_LINGER };

enum nj__paced_state {
    NJ__PACED_NOT_WAITING,
    NJ__PACED_WAIT_OWN,
    NJ__PACED_WAIT_SHARED,
    NJ__PACED_CLOSED
};

struct nj_shape_shared {
    struct nj_clients *clients;
    struct {
        struct nj_gcra rate_gcra;
        _Atomic int64_t wanted; /* by all lcores */
    } NJ_CACHE_ALIGNED class_of[NJ_CLASSES_MAX], root;
};

struct nj_shape {
    struct nj_shape_shared *shared;
    const struct nj_policy *policy;
    struct nj_counters *counters;
    nj_ns now, lease_span, due, publish_at; /* due: first lease of the root or a class */
    uint64_t run;
    uint32_t n_responses, n_waiting;
    uint32_t limits_gen; /* incremented with each policy, from 1 */
    struct nj_wheel wheel;
    struct nj_list round_done, no_credit, surplus_list, granted, all;
    struct nj_list unmigrated; /* those of `all` not yet moved to the latest policy */
    struct nj__node root;
    struct nj__class class_of[NJ_CLASSES_MAX];
    struct nj_pool groups;
    struct nj_paced_group *idle_group; /* kept without responses, or NULL */
    uint32_t bucket_mask;
    struct nj_list *bucket;
    void (*wake)(void *ctx, void *waiter); /* during a run */
    void *wake_ctx;
    uint32_t n_woken;
};

static inline struct nj__class *nj__class_of_node(struct nj__node *n)
{
    return nj_container_of(n, struct nj__class, node);
}

static inline struct nj_paced_group *nj__group_of_node(struct nj__node *n)
{
    return nj_container_of(n, struct nj_paced_group, node);
}

/* The limit of one response. */
static inline const struct nj_paced_limit *nj__paced_own_limit(const struct nj_paced *f)
{
    return f->has_own_limit ? &f->own : &f->group->class_of->own;
}

/* Bytes that the limit of one response does not apply to, of those still to come. */
static inline uint64_t nj__paced_unlimited_bytes(const struct nj_paced *f)
{
    uint64_t after = f->has_own_limit ? 0 : f->group->class_of->policy->rate_after;
    return after > f->n_bytes ? after - f->n_bytes : 0;
}

static inline uint64_t nj__paced_remaining(const struct nj_paced *f)
{
    return f->inner->ops->remaining(f->inner);
}

/* ---- quantum.c ---- */

/* The quantum of the response, and the least that is worth a wake. */
uint32_t nj__paced_next_grant_bytes(const struct nj_shape *s, const struct nj_paced *f);
uint32_t nj__paced_min_grant(const struct nj_paced *f);

/* ---- drr_tree.c: scheduling ---- */

void nj__node_init(struct nj__node *n, struct nj__node *parent, struct nj_gcra *rate_gcra,
                   uint8_t level);
void nj__node_set_limit(struct nj__node *n, const struct nj_limit *limit);
/* Adds a response to, or removes it from, the queue for common credit. */
void nj__drr_queue_response(struct nj_shape *s, struct nj_paced *f);
void nj__drr_remove_response(struct nj_shape *s, struct nj_paced *f);
/* Charges and returns up to `n` bytes at once, if no other response is passed over. 0: it has to
 * wait. */
uint32_t nj__drr_try_charge_at_once(struct nj_shape *s, struct nj_paced *f, uint32_t n);
/* The next response with credit, already charged on all levels; NULL: none in this run. */
struct nj_paced *nj__drr_charge_next_response(struct nj_shape *s, uint32_t *n);
/* Returns unused credit. */
void nj__drr_return_credit(struct nj_shape *s, struct nj_paced_group *g, uint32_t n);
/* Start of a run: leases and lists, before the first grant. */
void nj__drr_begin_shaper_run(struct nj_shape *s);
/* The lease of a LEASED node is due: adds it to the credit of the node, and schedules the node. */
void nj__lease_add_to_credit(struct nj_shape *s, struct nj__node *n);
/* Returns all credit to the GCRAs and resets the deficit. No response waits in the subtree. */
void nj__node_return_all_credit(struct nj_shape *s, struct nj__node *n);
/* Sets other limits, and perhaps another parent. Waiting responses continue to wait. */
void nj__node_set_limit_and_parent(struct nj_shape *s, struct nj__node *n, struct nj__node *parent,
                                   const struct nj_limit *limit);

/* ---- credit_lease.c: credit common to lcores ---- */

void nj__publish_class_demand(struct nj_shape *s, struct nj__class *c, int64_t wanted);
/* Publishes the demand of this lcore, at intervals. */
void nj__publish_all_class_demand(struct nj_shape *s);
/* Updates the part of a READY group: less than NJ__SHARE_ONE if other lcores serve the same client.
 */
void nj__group_update_class_demand(struct nj_paced_group *g);
/* Is the node scheduled, or was it until a moment before? */
bool nj__node_is_active(const struct nj_shape *s, const struct nj__node *n);
/* The weight of a class on this lcore. */
uint64_t nj__class_weight_here(const struct nj_shape *s, const struct nj__class *c);
/* This lcore's part of a lease. */
uint64_t nj__lease_bytes(struct nj_shape *s, struct nj__node *n);
/* Returns the time it is due, and its size in *n_bytes. */
nj_ns nj__lease_from_gcra(struct nj_shape *s, struct nj__node *n, uint64_t wanted,
                          uint64_t *n_bytes);
/* Adds a lease to the node's credit if it is due now, else takes none and returns false. */
bool nj__lease_try_acquire_now(struct nj_shape *s, struct nj__node *n, uint64_t wanted);
/* Returns the lease of a LEASED node. */
void nj__lease_cancel(struct nj_shape *s, struct nj__node *n);

/* ---- client_response_group.c: clients on this shard ---- */

struct nj_paced_group *nj__group_join(struct nj_shape *s, struct nj__class *c,
                                      struct nj_client *client);
void nj__group_leave(struct nj_shape *s, struct nj_paced_group *g);
/* Frees the group that is kept without responses. */
void nj__group_free_idle_spare(struct nj_shape *s);
/* Updates the group to the policy in use. */
void nj__group_migrate(struct nj_shape *s, struct nj_paced_group *g);
void nj__group_count_sent(struct nj_shape *s, struct nj_paced_group *g, uint32_t n);
void nj__group_flush_counts(struct nj_paced_group *g);
void nj__group_release_idle_share(struct nj_shape *s, struct nj_paced_group *g);

/* ---- paced_body.c: responses ---- */

void nj__paced_grant(struct nj_shape *s, struct nj_paced *f, uint32_t n);
void nj__paced_wake(struct nj_shape *s, struct nj_paced *f);
void nj__paced_on_own_limit_timer(struct nj_shape *s, struct nj_paced *f);
void nj__paced_return_grant(struct nj_shape *s, struct nj_paced *f);
void nj__paced_migrate(struct nj_shape *s, struct nj_paced *f);
/* Computes the limit of one response from `limit`. */
void nj__paced_limit_init(struct nj_paced_limit *own, const struct nj_limit *limit);
