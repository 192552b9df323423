/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the files of an exchange share.
 *
 *   exchange.c  its life: begun, offered, run, settled, freed
 *   worker_dispatch.c    its way to a worker and home
 *   send_response.c    what goes to the stream: head, body, end
 *   request.c   nj_request_*()
 *   request_body.c  the body of a request, as it comes
 *   response.c  nj_response_*()
 *   response_fields.c    names and values of a response, packed
 *   wait_api.c      nj_sleep(), nj_await()
 *
 * struct nj_request and struct nj_response are all that a handler on a worker touches, and nobody
 * else does while it is there.
 */
#ifndef NJ_HTTP_HANDLERS_EXCHANGE_INTERNAL_H
#define NJ_HTTP_HANDLERS_EXCHANGE_INTERNAL_H

#include "base/attr.h"
#include "base/pool.h"
#include "http/handlers/body_blocks.h"
#include "http/handlers/exchange.h"
#include "sched/fiber.h"
#include "sched/timer_wheel.h"

typedef void nj__callback(struct nj_request *, struct nj_response *, void *arg);

struct nj__hook {
    nj__callback *fn;
    void *arg;
};

/* Fields as they were added, one after the other: lengths, name, value. */
struct nj__fields {
    struct nj_block *block;
    uint32_t n, n_bytes; /* names and values */
};

struct nj_request_head;
/* request.c: the head, as a framing shows it; strings live as long as the request. */
void nj__head_of(const struct nj_request *req, struct nj_request_head *out);

/* response_fields.c. `b` NULL: memory from malloc(). 0 or enum nj_error. */
int nj__fields_add(struct nj__fields *f, struct nj_blocks *b, const char *name, const char *value);
/* As views, of which `out` has room for NJ_RESPONSE_FIELDS_MAX. */
uint32_t nj__fields_list(const struct nj__fields *f, struct nj_field *out);
void nj__fields_clear(struct nj__fields *f);

/* The head of a request, in one block. */
struct nj__head {
    struct nj_view method, scheme, authority, path, plain_path, query;
    uint32_t n_fields;
    struct nj_field fields[];
};

struct nj_request {
    struct nj_block *block; /* NULL: only its task is left */
    struct nj_bytes body;
    struct nj_bytes used; /* what a worker has read of it: the blocks are the lcore's */
    uint64_t n_came, n_max;
    bool complete;
    bool was_told; /* on_body was called since something came */
    bool too_large;
    bool is_head;
    struct nj__hook on_body;
};

/* What a handler wants of the response besides its content; carried out by nj__answer(). */
struct nj__wishes {
    bool class_of, rate, priority;
    bool is_unchecked; /* whether there is a class of that name is not known */
    uint8_t urgency;
    bool incremental;
    char class_name[NJ_CLASS_NAME_MAX];
    uint64_t bytes_per_s;
};

/* Bytes of a handler's, by reference: the last of the body. */
struct nj__lent {
    const uint8_t *p;
    uint64_t n_bytes;   /* not yet taken */
    struct nj_ref *ref; /* NULL: nothing was lent */
};

struct nj_response {
    bool on_worker;
    bool homesick;  /* on a worker it wanted what only its lcore has */
    bool committed; /* the head stands: a body byte was written, or flushed */
    bool kept, ended, broken;
    bool is_last;           /* nothing may follow: a buffer or a file was given */
    uint16_t status;        /* 0: none set */
    uint64_t declared;      /* content-length that was given, or NJ_BODY_UNKNOWN */
    uint32_t wants_room;    /* on_room is to be called at so many bytes of room; 0: it is not */
    uint64_t n_written;     /* also of bytes that are not sent, as HEAD was asked */
    struct nj_bytes out;    /* written, not yet taken */
    struct nj__lent lent;   /* ... and behind it */
    struct nj_block *file;  /* the name of a file that is the response, or NULL */
    struct nj_field *extra; /* ... and the fields that go with it */
    struct nj__wishes wishes;
    struct nj_blocks *blocks; /* NULL: by malloc() */
    struct nj__fields fields, trailers;
    struct nj__hook on_room, on_timer, on_gone;
};

enum nj__exchange_state {
    NJ__ASKED,   /* its task waits with its connection */
    NJ__OFFERED, /* ... with the strategy */
    NJ__RUNNING, /* its handler does, or is parked */
    NJ__KEPT,    /* its handler returned and will be called back */
    NJ__PACKING, /* to go to a worker, once its body is complete */
    NJ__AWAY,    /* with a worker */
    NJ__LEFT,    /* nothing of its handler is left */
};

enum nj__waiting { NJ__WAIT_NONE, NJ__WAIT_BODY, NJ__WAIT_ROOM };

/* What a handler that was kept is to hear. */
enum { NJ__DUE_BODY = 1, NJ__DUE_ROOM = 2, NJ__DUE_TIMER = 4 };

struct nj_exchange {
    struct nj_task task;
    struct nj_list node;   /* its connection's */
    struct nj_list dirty;  /* in set->dirty: there is something to settle */
    struct nj_list hungry; /* in set->hungry: no block was left */
    struct nj_exchanges *set;
    struct nj_txn *txn;
    struct nj_exchange_peer *peer;
    struct nj_body body;
    uint32_t route;
    uint8_t state;   /* enum nj__exchange_state */
    uint8_t waiting; /* enum nj__waiting, of a fiber */
    uint8_t due;
    bool body_open; /* HTTP/2 has the body */
    bool with_port; /* worker_dispatch.c has its task, until poll() gives it back */
    bool head_sent, end_told, reset_sent;
    bool late;              /* it is not waited for the rest of the body */
    bool packed;            /* its body waits here: the windows have had it back as it came */
    bool fed;               /* it waited for blocks, and it is its turn */
    bool grew;              /* bytes since resume */
    bool expects;           /* 100 (Continue) is to be said when somebody wants the body */
    uint8_t reset;          /* enum nj_reset: the stream is to be reset */
    uint16_t error;         /* not 0: the response is an error of this status */
    uint64_t n_done;        /* request bytes that may go back to the windows */
    bool at_work;           /* it is one of its client's n_at_work */
    uint32_t n_held;        /* of set->n_held */
    uint32_t n_owed;        /* of peer->n_body_bytes */
    struct nj_fiber *fiber; /* RUNNING: where; NULL inline */
    struct nj_waiter waiter;
    struct nj_timer timer;
    struct nj_request req;
    struct nj_response resp;
};

struct nj_exchanges {
    struct nj_exchanges_config config;
    struct nj_pool pool;
    struct nj_blocks *blocks; /* heads, and all of responses */
    struct nj_blocks *bodies; /* of requests */
    struct nj_list dirty, hungry;
    struct nj_list holders; /* peers with bodies */
    struct nj_list home;    /* tasks that never went, which poll() lets go of */
    struct nj_wheel wheel;
    nj_ns now, feed_at;
    uint32_t n_fed; /* of the last that were let in for blocks, those that did not come yet */
    uint32_t n_away;
    bool unflushed;    /* some went since the port was flushed */
    uint32_t *longest; /* response of each route that a worker brought */
    uint64_t n_held, n_held_max;
};

/* exchange.c */
extern const struct nj_task_ops nj__exchange_task_ops;
static inline struct nj_exchange *nj__of_request(const struct nj_request *req)
{
    return (struct nj_exchange *)((char *)(uintptr_t)req - offsetof(struct nj_exchange, req));
}
static inline struct nj_exchange *nj__of_response(const struct nj_response *resp)
{
    return (struct nj_exchange *)((char *)(uintptr_t)resp - offsetof(struct nj_exchange, resp));
}
static inline struct nj_exchange *nj__of_task(const struct nj_task *task)
{
    return (struct nj_exchange *)((char *)(uintptr_t)task - offsetof(struct nj_exchange, task));
}
static inline const struct nj_route *nj__route_of(const struct nj_exchange *x)
{
    return nj_routes_at(x->set->config.routes, x->route);
}
/* Its stream is not over. */
static inline bool nj__is_open(const struct nj_exchange *x)
{
    return x->txn->stream != NULL;
}
static inline struct nj_counters *nj__counters(const struct nj_exchanges *set)
{
    return set->config.txns->counters;
}
/* There is something to settle. */
void nj__mark(struct nj_exchange *x);
/* Run the handler of an exchange, here and now. */
void nj__handle(struct nj_exchange *x);
/* Its handler may want the body from now on: whoever waits for that is to be told. */
static inline void nj__body_wanted(struct nj_exchange *x)
{
    if (nj_unlikely(x->expects))
        nj__mark(x);
}
/* It is given up, since it is its connection or its client that has too much. */
void nj__hoards(const struct nj_exchange *x, enum nj_counter why);
/* It needs no stack, or not any more. */
void nj__off_stack(struct nj_exchange *x);
/* Its handler has gone for good. */
void nj__leave(struct nj_exchange *x);

/* request_body.c: its connection holds what it holds of its body. */
void nj__owe(struct nj_exchange *x);

/* worker_dispatch.c */
void nj__errand_settle(struct nj_exchange *x);
/* The workers have no room. True: its route was moved there, and it begins once more, on the core
 * as its route declares. */
bool nj__errand_again(struct nj_exchange *x);
/* Nobody wants what it was sent for. False: a worker has it, and it comes home later. */
bool nj__errand_withdraw(struct nj_exchange *x);
/* It is the lcore's again. */
void nj__errand_home(struct nj_exchange *x);
/* So much is left of a response that a worker brought, or expected of it. */
void nj__errand_holds(struct nj_exchange *x, uint32_t n_bytes);

/* response.c: how many bytes can be written now. */
uint32_t nj__response_room(const struct nj_response *resp);

/* send_response.c */
extern const struct nj_body_ops nj__exchange_body_ops;
/* Let the stream know what it does not yet. */
void nj__answer(struct nj_exchange *x);
/* Give back what was lent. */
void nj__lent_clear(struct nj__lent *lent);
/* Make it an error of that status, if it has no head yet; else break it off. */
void nj__answer_error(struct nj_exchange *x, uint16_t status);
/* Its buffer, or the pools, have room again. */
void nj__have_room(struct nj_exchange *x);

/* wait_api.c: of a handler on a fiber; 0 or enum nj_error. */
int nj__wait_for(struct nj_exchange *x, enum nj__waiting what);
/* Returns NJ_ERR_CANCELLED. A handler that calls it again and again yields the core in between. */
int nj__gone(const struct nj_exchange *x);

#endif
