/* SPDX-License-Identifier: BSD-3-Clause */
/* What the files of lib/shape share: the tree of one shard. */
#ifndef NJ_SHAPE_SHAPER_INTERNAL_H
#define NJ_SHAPE_SHAPER_INTERNAL_H

#include "base/attr.h"
#include "base/pool.h"
#include "shape/shaper.h"

/* All lcores together lease so much time of a shared limit at once; a lcore its share of it. Longer
 * than a step and a tick of the wheel, so that who is a little late still has his turn; short
 * against the burst, 50 ms. A lcore whose steps take longer leases more, up to MAX. */
#define NJ__LEASE_NS       (4 * NJ_MS)
#define NJ__LEASE_NS_MAX   (20 * NJ_MS)
/* What is left of a turn stays for one who is away spending so long; and a limit that made somebody
 * wait so long ago is not short any more: who asks may be served at once. */
#define NJ__TURN_KEPT_NS   (8 * NJ_MS)
#define NJ__CALM_NS        (16 * NJ_MS)
/* So long the others do not begin another round. He may have to wait for ACKs, several steps,
 * before he has sent what he was given; who does not come back at all costs them nothing but this
 * time, for their limits go on to save. */
#define NJ__AWAY_NS        (1 * NJ_MS)
/* A client that wants nothing for so long leaves its share of a limit to other lcores. */
#define NJ__LINGER_NS      (50 * NJ_MS)
/* Shares between lcores are in parts of this. */
#define NJ__ONE            1024
/* The least a turn brings: who owes a whole quantum is passed over 46 times at most. */
#define NJ__TURN_MIN_BYTES 64

enum nj__node_state {
    NJ__IDLE,   /* nothing below wants */
    NJ__READY,  /* among those of its parent that may go */
    NJ__PARKED, /* had its round; again in the next run */
    NJ__NEEDY,  /* has no credit, and asks for a lease in the next run */
    NJ__LEASED, /* has a lease, for later */
};

enum { NJ__ROOT, NJ__CLASS, NJ__GROUP };

struct nj__node {
    struct nj__node *parent;
    struct nj_gate *gate; /* which all lcores lease from */
    uint64_t rate, burst; /* of the ceiling; rate 0: none */
    uint64_t pace;        /* the rate of the slowest limit from here to the root; 0: none */
    uint64_t share_bytes; /* 16 ms of the rate, for those who wait below to share */
    struct nj_list link;  /* of the parent's `below` or `away`, or the shard's `parked`, `needy` */
    struct nj_list below; /* those that may go: nodes, or responses of a group */
    struct nj_list away;  /* nodes that left with a grant and have not been back */
    nj_ns away_until;     /* they are expected until then */
    struct nj_list rich;  /* credit and nobody who wants it */
    uint32_t n_below;     /* nodes in `below` */
    uint32_t n_waiting;   /* responses below, at any depth */
    uint32_t crowd;       /* so many when `crowd_run` began to serve */
    uint64_t crowd_run;
    uint64_t credit; /* leased, due and not given on */
    uint64_t leased; /* LEASED: so much, at `lease_due` */
    nj_ns lease_due;

    /* Deficit round robin among the children of one parent. */
    int64_t deficit; /* bytes of its turn that are left; negative: it had more */
    int64_t brought; /* by its last turn */
    uint64_t turn;   /* the round in which that began */
    nj_ns left_at;
    /* Of the parent's side of it. */
    uint64_t round;
    uint64_t parked;  /* the last run in which one was set aside, for those away below it */
    uint64_t weighed; /* the run in which the two below were made */
    uint64_t round_bytes, round_weight;
    nj_ns calm_at;

    uint8_t state, level;
};

struct nj__class {
    struct nj__node node;
    const struct nj_class *policy; /* NULL: no such class now */
    uint32_t owner;                /* of the slot, the last one: whose stats these are */
    bool gone;                     /* its last responses are about to become the default class's */
    uint64_t weight;
    struct nj_paced_limit own; /* of one response */

    int64_t wanted; /* clients that may go, less what of them other lcores have, in NJ__ONE */
    int64_t peak;   /* the most of it since it was published */
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
    uint32_t changes;               /* of the shard's, that it has followed */
    uint32_t owner;                 /* of the slot, whose responses these are */
    int32_t share;                  /* READY: counted in the class's `wanted` */
    bool counted;                   /* in the client's n_lcores */
    uint64_t n_bytes, throttled_ns; /* not yet written to the client */
    nj_ns flushed_at;
};

enum nj__timer_kind { NJ__TIMER_OWN, NJ__TIMER_LEASE, NJ__TIMER_LINGER };

enum nj__paced_state { NJ__PACED_FREE, NJ__PACED_OWN, NJ__PACED_WANT, NJ__PACED_CLOSED };

struct nj_shape_shared {
    struct nj_clients *clients;
    struct {
        struct nj_gate gate;
        _Atomic int64_t wanted; /* by all lcores */
    } NJ_CACHE_ALIGNED class_of[NJ_CLASSES_MAX], root;
};

struct nj_shape {
    struct nj_shape_shared *shared;
    const struct nj_policy *policy;
    struct nj_counters *counters;
    nj_ns now, span, due, sweep_at; /* due: the first lease of the root or a class */
    uint64_t run;
    uint32_t n_responses, n_waiting;
    uint32_t changes; /* of limits, from 1 on */
    struct nj_wheel wheel;
    struct nj_list parked, needy, rich, granted, all;
    struct nj_list behind; /* those of `all` that have not followed the last change */
    struct nj__node root;
    struct nj__class class_of[NJ_CLASSES_MAX];
    struct nj_pool groups;
    struct nj_paced_group *idle_group; /* without responses, or NULL */
    uint32_t bucket_mask;
    struct nj_list *bucket;
    void (*wake)(void *ctx, void *waiter); /* within a run */
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

/* ---- drr_tree.c: who may go ---- */

void nj__node_init(struct nj__node *n, struct nj__node *parent, struct nj_gate *gate,
                   uint8_t level);
void nj__node_limit(struct nj__node *n, const struct nj_limit *limit);
/* A response begins to wait for shared credit, or stops to. */
void nj__want(struct nj_shape *s, struct nj_paced *f);
void nj__unwant(struct nj_shape *s, struct nj_paced *f);
/* Up to `n` bytes at once, if nobody is wronged: all levels are charged. 0: it has to wait. */
uint32_t nj__take_now(struct nj_shape *s, struct nj_paced *f, uint32_t n);
/* The next one that has credit, which all levels are charged for; NULL: nobody in this run. */
struct nj_paced *nj__serve(struct nj_shape *s, uint32_t *n);
/* Credit that was not used. */
void nj__give_back(struct nj_shape *s, struct nj_paced_group *g, uint32_t n);
/* The tree's part of a run, before anybody is served. */
void nj__tree_begin(struct nj_shape *s);
void nj__lease_due(struct nj_shape *s, struct nj__node *n);
/* Everything back to the gates; the node forgets its turn. Nothing waits below. */
void nj__node_reset(struct nj_shape *s, struct nj__node *n);
/* Other limits, and perhaps another parent: what waits below goes on to wait. */
void nj__node_change(struct nj_shape *s, struct nj__node *n, struct nj__node *parent,
                     const struct nj_limit *limit);

/* ---- credit_lease.c: credit that lcores share ---- */

void nj__publish(struct nj_shape *s, struct nj__class *c, int64_t wanted);
/* Says what is wanted here, now and then. */
void nj__sweep(struct nj_shape *s);
/* What a READY group counts for on this lcore: its part, if others have the same client. */
void nj__group_share(struct nj_paced_group *g);
/* It may go, or has just gone. */
bool nj__is_there(const struct nj_shape *s, const struct nj__node *n);
/* What a class weighs on this lcore. */
uint64_t nj__weight_here(const struct nj_shape *s, const struct nj__class *c);
/* This lcore's part of what all lease at a time. */
uint64_t nj__lease_bytes(struct nj_shape *s, struct nj__node *n);
/* Returns when it is due; *n_bytes: how much it is. */
nj_ns nj__lease(struct nj_shape *s, struct nj__node *n, uint64_t wanted, uint64_t *n_bytes);
/* A lease that is due at once is credit; else there is none, and false. */
bool nj__lease_now(struct nj_shape *s, struct nj__node *n, uint64_t wanted);
/* LEASED: back with it. */
void nj__lease_forget(struct nj_shape *s, struct nj__node *n);

/* ---- client_group.c: clients on this shard ---- */

struct nj_paced_group *nj__group_join(struct nj_shape *s, struct nj__class *c,
                                      struct nj_client *client);
void nj__group_leave(struct nj_shape *s, struct nj_paced_group *g);
/* Free the one that is kept without responses. */
void nj__group_drop_idle(struct nj_shape *s);
/* It has the limits of the policy in use from here on. */
void nj__group_follow(struct nj_shape *s, struct nj_paced_group *g);
void nj__group_sent(struct nj_shape *s, struct nj_paced_group *g, uint32_t n);
void nj__group_count(struct nj_paced_group *g);
void nj__group_linger_due(struct nj_shape *s, struct nj_paced_group *g);

/* ---- paced.c: responses ---- */

/* How much a turn is for it; need: the least that is worth a wake. */
uint32_t nj__paced_quantum(const struct nj_shape *s, const struct nj_paced *f);
uint32_t nj__paced_need(const struct nj_paced *f);
void nj__paced_grant(struct nj_shape *s, struct nj_paced *f, uint32_t n);
void nj__paced_wake(struct nj_shape *s, struct nj_paced *f);
void nj__paced_own_due(struct nj_shape *s, struct nj_paced *f);
void nj__paced_take_back(struct nj_shape *s, struct nj_paced *f);
void nj__paced_follow(struct nj_shape *s, struct nj_paced *f);
/* What `limit` means for one response. */
void nj__paced_limit(struct nj_paced_limit *own, const struct nj_limit *limit);

#endif
