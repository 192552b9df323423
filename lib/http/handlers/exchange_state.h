/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The data of an exchange, shared by the files that implement it. Each calls those below it only:
 *
 * exchange.c           life cycle: begin, submit, run, settle, free
 * send_response.c      head, body and end, to the stream
 * worker_dispatch.c    to a worker and back
 * worker_call.c        nj_call_on_worker()
 * request_body.c       the request body as it arrives
 * request_api.c        nj_request_*()
 * response_api.c       nj_response_*()
 * wait_api.c           nj_sleep(), nj_await_...(), nj_event_...()
 * exchange_state.c     steps that several of these take
 * response_fields.c    fields that a handler adds to a response
 *
 * While a handler is on a worker, only the worker touches its struct nj_request and struct
 * nj_response, and it touches nothing else. Everything else belongs to the shard's lcore.
 */
#pragma once

#include "base/compiler.h"
#include "base/held_shares.h"
#include "base/pool.h"
#include "base/relaxed_atomics.h"
#include "base/timer_wheel.h"
#include "http/handlers/body_blocks.h"
#include "http/handlers/exchange.h"
#include "sched/fiber.h"
#include "telem/count.h"

typedef void nj__callback(struct nj_request *, struct nj_response *, void *arg);

struct nj__hook {
    nj__callback *fn;
    void *arg;
};

/* Fields stored in the order they were added: lengths, name, value. */
struct nj__resp_fields {
    struct nj_block *block;
    uint32_t n, n_bytes; /* bytes of names and values */
};

/* request_api.c: the request head as a framing provides it; strings live as long as the request. */
void nj__stored_head_view(const struct nj_request *req, struct nj_request_head *out);

/* response_fields.c: adds a field. `b` NULL: memory from malloc(). 0 or enum nj_error. */
int nj__resp_fields_add(struct nj__resp_fields *f, struct nj_block_pool *b, const char *name,
                        const char *value);
/* Writes the fields as views; `out` has room for NJ_RESPONSE_FIELDS_MAX. */
uint32_t nj__resp_fields_views(const struct nj__resp_fields *f, struct nj_field *out);
void nj__resp_fields_clear(struct nj__resp_fields *f);

/* A request head in one block, with its strings. */
struct nj__stored_head {
    struct nj_view method, scheme, authority, path, plain_path, query;
    uint32_t n_fields;
    struct nj_field fields[];
};

struct nj_request {
    struct nj_block *block; /* the head */
    struct nj_byte_queue body;
    struct nj_byte_queue used; /* blocks that a worker has read; released on the lcore */
    uint64_t n_received, n_max;
    uint32_t n_mount; /* see struct nj_route_match */
    bool complete;
    bool body_notified; /* on_body was called since the last bytes */
    bool too_large;
    bool is_head;
    struct nj__hook on_body;
};

/* Class, rate and priority that a handler set; applied by nj__exchange_send_pending(). */
struct nj__send_options {
    bool class_of, rate, priority;
    bool is_unchecked; /* `class_name` was set on a worker and is not validated */
    uint8_t urgency;
    bool incremental;
    char class_name[NJ_CLASS_NAME_MAX];
    uint64_t bytes_per_s;
};

/* A handler's buffer sent by reference; always the last part of the body. */
struct nj__borrowed {
    const uint8_t *p;
    uint64_t n_bytes;   /* not yet sent */
    struct nj_ref *ref; /* NULL: no buffer */
};

struct nj_response {
    _Atomic(const void *) owner; /* the thread that may call with it: nj_this_thread() */
    bool on_worker;
    bool needs_lcore; /* a worker's handler needs a function of the lcore */
    bool committed;   /* the head is final: a body byte was written, or flushed */
    bool is_deferred, ended, broken;
    bool is_final;       /* a buffer or a file was given: no more bytes may follow */
    uint16_t status;     /* 0: not set */
    uint32_t wants_room; /* free bytes at which on_writable is to be called; 0: not requested */
    uint64_t declared_length;     /* content-length set by the handler, or NJ_BODY_LEN_UNKNOWN */
    uint64_t n_written;           /* includes bytes not sent because the method is HEAD */
    struct nj_byte_queue out;     /* written, not yet sent */
    struct nj__borrowed borrowed; /* sent after `out` */
    struct nj_block *file;        /* name of the file to send as the response, or NULL */
    struct nj_field *file_fields; /* room for its fields as views */
    struct nj__send_options send_options;
    struct nj_block_pool *blocks; /* NULL: malloc() */
    struct nj__resp_fields fields, trailers;
    struct nj__hook on_writable, on_timer, on_cancelled;
};

enum nj__exchange_state {
    NJ__EXCHANGE_CREATED,       /* its task waits in its connection's list */
    NJ__EXCHANGE_SUBMITTED,     /* its task is with the strategy */
    NJ__EXCHANGE_FIBER_RUNNING, /* its handler runs or is parked */
    NJ__EXCHANGE_DEFERRED,      /* its handler returned and gets callbacks */
    NJ__EXCHANGE_AWAITING_BODY, /* waits for the complete body, then goes to a worker */
    NJ__EXCHANGE_ON_WORKER,     /* on a worker */
    NJ__EXCHANGE_FINISHED,      /* its handler has finished */
};

enum nj__waiting { NJ__WAIT_NONE, NJ__WAIT_BODY, NJ__WAIT_WRITABLE };

/* Pending callbacks of a handler that returned. */
enum { NJ__DUE_BODY = 1, NJ__DUE_WRITABLE = 2, NJ__DUE_TIMER = 4 };

struct nj_exchange {
    struct nj_task task;
    struct nj_list node;            /* in its connection's list */
    struct nj_list dirty;           /* in set->dirty: there is something to settle */
    struct nj_list waiting_for_buf; /* in set->waiting_for_buf: no block was free */
    struct nj_exchanges *set;
    struct nj_txn *txn;
    struct nj_conn_exchanges *conn;
    struct nj_client_cert *cert; /* one reference; NULL: none */
    struct nj_body body;
    uint32_t route;
    uint8_t state;   /* enum nj__exchange_state */
    uint8_t waiting; /* enum nj__waiting: what its fiber waits for */
    uint8_t due;
    bool body_open;    /* the framing owns the body */
    bool with_workers; /* worker_dispatch.c owns its task, until poll() returns it */
    bool head_sent, end_sent, reset_sent;
    bool body_overdue;          /* the body timed out */
    bool body_buffered;         /* the body is buffered here, and its bytes were returned to the
                                 * flow-control windows on arrival */
    bool buf_granted;           /* it waited for blocks and may allocate now */
    bool has_new_bytes;         /* bytes were written since resume */
    bool wants_continue;        /* 100 (Continue) is to be sent when the body is wanted */
    uint8_t reset;              /* enum nj_reset: reason of a reset to be sent */
    uint16_t error;             /* not 0: respond with an error of this status */
    uint64_t n_window_credit;   /* request bytes to return to the flow-control windows */
    bool needs_stack;           /* counted in its client's n_need_stack */
    uint32_t n_held;            /* its part of set->n_held */
    struct nj_holder held_body; /* of set->held_bodies, in units of 4 KiB */
    struct nj_fiber *fiber;     /* RUNNING: its fiber; NULL if inline */
    struct nj_waiter waiter;
    struct nj_timer timer;
    struct nj_request req;
    struct nj_response resp;
};

struct nj_exchanges {
    struct nj_exchanges_config config;
    struct nj_pool pool;
    struct nj_block_pool *blocks; /* for request heads and responses */
    struct nj_block_pool *bodies; /* for request bodies */
    struct nj_list dirty, waiting_for_buf;
    struct nj_held_shares held_bodies; /* request bodies, by client */
    struct nj_list undispatched; /* tasks that were not sent to a worker, for poll() to return */
    struct nj_wheel wheel;
    nj_ns now, grant_at;
    uint32_t n_granted; /* exchanges granted blocks that have not allocated yet */
    uint32_t n_on_worker;
    uint32_t n_calls;           /* of nj_call_on_worker() that are with the workers */
    bool unflushed;             /* tasks were submitted since the last flush */
    uint32_t *longest_response; /* per route: longest response from a worker, decaying */
    uint64_t n_held, n_held_max;
};

static inline struct nj_exchange *nj__exchange_of_req(const struct nj_request *req)
{
    return (struct nj_exchange *)((char *)(uintptr_t)req - offsetof(struct nj_exchange, req));
}
static inline struct nj_exchange *nj__exchange_of_resp(const struct nj_response *resp)
{
    return (struct nj_exchange *)((char *)(uintptr_t)resp - offsetof(struct nj_exchange, resp));
}
static inline struct nj_exchange *nj__exchange_of_task(const struct nj_task *task)
{
    return (struct nj_exchange *)((char *)(uintptr_t)task - offsetof(struct nj_exchange, task));
}
static inline const struct nj_route *nj__route_of(const struct nj_exchange *x)
{
    return nj_routes_at(x->set->config.routes, x->route);
}
/* True until the stream has closed. */
static inline bool nj__stream_is_open(const struct nj_exchange *x)
{
    return x->txn->stream != NULL;
}
static inline struct nj_counters *nj__counters(const struct nj_exchanges *set)
{
    return set->config.txns->counters;
}

/* --- exchange_state.c --- */

/* The caller is not on the thread of the handler. */
static inline bool nj__is_foreign(const struct nj_response *resp)
{
    return nj_unlikely(nj_load_relaxed(&resp->owner) != nj_this_thread());
}
/* Counts such a call, see struct nj_task_class. Returns NJ_ERR_INVALID. */
int nj__report_foreign_call(const struct nj_response *resp) __attribute__((cold, noinline));
/* Queues the exchange for nj_exchanges_process_dirty(). */
void nj__mark_dirty(struct nj_exchange *x);
/* The handler wants the body: sends a due 100 (Continue) at the next settle. */
static inline void nj__schedule_due_continue(struct nj_exchange *x)
{
    if (nj_unlikely(x->wants_continue))
        nj__mark_dirty(x);
}
/* Counts and reports that its client or connection exceeds its share. */
void nj__report_over_limit(const struct nj_exchange *x, nj_counter why);
/* Sets the bytes reserved or held for a worker's response. */
void nj__set_held_response_bytes(struct nj_exchange *x, uint32_t n_bytes);
/* The exchange no longer needs a fiber stack. */
void nj__clear_needs_stack(struct nj_exchange *x);
/* Removes the exchange from its connection's list, if it is in one. */
void nj__exchange_detach(struct nj_exchange *x);
/* The handler has finished; no callback follows. */
void nj__handler_done(struct nj_exchange *x);
/* Releases the handler's buffer. */
void nj__borrowed_release(struct nj__borrowed *borrowed);
/* Turns the response into an error of that status; if the head was sent, breaks the response
 * off. */
void nj__exchange_fail(struct nj_exchange *x, uint16_t status);
/* Bytes that can be written now. */
uint32_t nj__response_room(const struct nj_response *resp);
/* The response buffer or the pools have room again: wakes the handler. */
void nj__notify_writable(struct nj_exchange *x);

/* --- wait_api.c --- */

/* Parks the handler's fiber. 0 or enum nj_error. */
int nj__wait_for(struct nj_exchange *x, enum nj__waiting what);
/* Returns NJ_ERR_CANCELLED. A handler that calls repeatedly yields the core each time. */
int nj__report_cancelled(const struct nj_exchange *x);

/* --- request_body.c --- */

/* Updates the body bytes that count for its client. */
void nj__charge_body_to_client(struct nj_exchange *x);

/* --- worker_dispatch.c --- */

void nj__dispatch_when_body_complete(struct nj_exchange *x);
/* The workers are full. True: the route had been moved to the workers, and the task is submitted
 * again with its declared type. */
bool nj__dispatch_requeue_on_lcore(struct nj_exchange *x);
/* Withdraws the task from the workers. False: a worker runs it, and it will complete. */
bool nj__dispatch_withdraw(struct nj_exchange *x);
/* The exchange has returned from a worker. */
void nj__dispatch_returned(struct nj_exchange *x);

/* --- worker_call.c --- */

/* A task has returned from the workers. True: it was a call of nj_call_on_worker(), not an
 * exchange, and its handler continues. */
bool nj__call_returned(struct nj_task *task);

/* --- send_response.c --- */

extern const struct nj_body_ops nj__exchange_body_ops;
/* Sends to the stream what has changed: head, bytes, end, error or reset. */
void nj__exchange_send_pending(struct nj_exchange *x);
