/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Strategies of threads: who consumes a task that was produced, and who goes on producing.
 *
 * The adaptive one serves the server's pool of workers (lib/threads/worker_pool.h). perf/reference
 * has others, which it and the strategy of the lcores (ewyk.h) are measured against; docs/ewyk.md
 * compares them. One strategy has one producer, and never asks it from two threads at a time; what
 * produce() writes is seen by the next call, on whatever thread.
 */
#ifndef NJ_SCHED_THREAD_STRATEGY_H
#define NJ_SCHED_THREAD_STRATEGY_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attr.h"
#include "sched/strategy_state.h"
#include "sched/task.h"

struct nj_strategy;

struct nj_producer {
    /*
     * The next task, or NULL: there is none (or it failed, which the producer has told whom it
     * concerns), and somebody will call nj_strategy_produce() or nj_strategy_dispatch() when there
     * is one. May call both itself.
     */
    struct nj_task *(*produce)(struct nj_producer *);
    /*
     * Asked by the producing thread when it is about to consume a task that may block: would
     * produce() find another one now? False: no thread is sent for, as somebody will call
     * nj_strategy_produce() or nj_strategy_dispatch() when there is one. NULL: always true.
     */
    bool (*has_more)(struct nj_producer *);
};

/* Where tasks go that the producing thread does not consume: usually a struct nj_thread_pool. */
struct nj_executor;
struct nj_executor_ops {
    /* Run it on another thread, some time. False: refused, it will not be run. `of`: whose task it
     * is, NULL when it is nobody's. */
    bool (*execute)(struct nj_executor *, struct nj_task *task, const struct nj_strategy *of);
    /* True: a thread that was waiting has it. Never blocks, queues, allocates or yields. */
    bool (*try_execute)(struct nj_executor *, struct nj_task *task);
    /* As execute() of nobody's task, and never waits for another thread, if all threads are there
     * from the start (n_min == n_max of a pool; else it may make one): for those that poll. When it
     * is true the task may still be rejected. May be NULL, see nj_strategy_config.posts. */
    bool (*post)(struct nj_executor *, struct nj_task *task);
};
struct nj_executor {
    const struct nj_executor_ops *ops;
};

/* A way to consume tasks. Functions that may be NULL: nothing is done. */
struct nj_strategy_ops {
    const char *name;
    /* Consume a task. False: another thread produces now, this one leaves. `tagged`: this context
     * must not block. */
    bool (*consume)(struct nj_strategy *, struct nj_task *, bool tagged);
    /* There was nothing to produce. True: the producer may leave. NULL: nj__word_rest(). */
    bool (*rest)(struct nj_strategy *, int *seat);
    /* A recruit is here. NULL: it produces, or leaves where another thread does. */
    void (*arrive)(struct nj_strategy *, bool *is_recruit);
    void (*asked)(struct nj_strategy *);   /* nj_strategy_dispatch() had no need of a recruit */
    void (*stopped)(struct nj_strategy *); /* wake those who sleep in the strategy */
};
/* Eat What You Kill. */
extern const struct nj_strategy_ops nj_adaptive_ops;

struct nj_strategy_config {
    const struct nj_strategy_ops *ops;
    void *of_ops; /* what they keep for this strategy */
    struct nj_producer *producer;
    struct nj_executor *executor;
    /* What a task declares; NULL: nothing. OS_BLOCKING is BLOCKING here: these threads may block.
     */
    enum nj_task_type (*type_of)(const struct nj_task *);
    bool posts; /* nj_strategy_dispatch() is called by threads that must not wait: it uses post() */
    /* When a task has run, produce() may find one that it did not find before: the thread that
     * consumed it asks for production again also where another thread produces. */
    bool asks_again;
    /* After nj_strategy_stop(), when the last thread has left: now it may be freed. Or NULL. */
    void (*on_stopped)(void *ctx);
    void *ctx;
};

struct nj_strategy_counters {
    uint64_t pc, pic, pec, epc; /* tasks, by how they were consumed */
    uint64_t rejected;          /* of pec: those that the executor refused */
    uint64_t dispatch_rejected; /* recruits that it refused */
    uint64_t recruits_sent;     /* accepted by the executor: of these, when they have come */
    uint64_t recruits_useful;   /* ... those that became the producer and found a task */
    uint64_t recruits_wasted;   /* ... and those that did not */
    uint64_t recruits_missed;   /* times that no thread waited, and so none could be sent */
    uint64_t recruits_spared;   /* times that none was sent, as there was nothing to produce */
};
#define NJ_STRATEGY_N_COUNTERS (sizeof(struct nj_strategy_counters) / sizeof(uint64_t))

/* Its fields are of lib/sched; embed it in what produces. */
struct nj_strategy {
    struct nj_strategy_config config;
    struct nj_task queued_recruit,
        sure_recruit;        /* at most one of each is on its way (strategy_state.h) */
    _Atomic uint32_t n_refs; /* the owner, threads inside, recruits on their way */
    _Atomic bool stopped;
    /* In the order of struct nj_strategy_counters: since the start, and at the last reset. */
    _Atomic uint64_t counts[NJ_STRATEGY_N_COUNTERS], zeroes[NJ_STRATEGY_N_COUNTERS];
    nj__word word NJ_CACHE_ALIGNED;
};

void nj_strategy_init(struct nj_strategy *s, const struct nj_strategy_config *config);

/*
 * Tasks may have come: produce and consume here, unless somebody else does already. From a context
 * that may run tasks: in the middle of a task of this same strategy it is nj_strategy_dispatch().
 * False: as there.
 */
bool nj_strategy_produce(struct nj_strategy *s);

/*
 * Tasks may have come: somebody else shall produce and consume; runs nothing here. False: it is
 * stopped, or the executor refuses and perhaps nobody comes, also for those who asked before: call
 * again later, or reject what is queued.
 */
bool nj_strategy_dispatch(struct nj_strategy *s);

/* No further task is produced; those that run are left alone. See on_stopped. */
void nj_strategy_stop(struct nj_strategy *s);
/* Begin anew. False: it is not stopped, or a thread is still inside. By its owner. */
bool nj_strategy_restart(struct nj_strategy *s);

struct nj_strategy_counters nj_strategy_counters(const struct nj_strategy *s);
/* The counters begin at zero again, nothing else changes. By one thread at a time. */
void nj_strategy_reset(struct nj_strategy *s);
/* "adaptive PRODUCING p=1 [pc=0,pic=0,pec=2,epc=7]", from any thread; takes no lock. As snprintf.
 */
int nj_strategy_describe(const struct nj_strategy *s, char *out, size_t n_bytes);

/* --- what it decides by ----------------------------------------------------------------------- */

/*
 * How a task is consumed, by its type (of nj_task_type_of()), whether this context must not block,
 * and whether there is a recruit: PC, PIC, EPC (NJ_MODE_EPC_INLINE) or PEC (NJ_MODE_PEC_WORKER).
 */
enum nj_mode nj_mode_choose(enum nj_task_type type, bool must_not_block, bool recruit);

#endif
