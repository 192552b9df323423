/* SPDX-License-Identifier: BSD-3-Clause */
/* What the strategies share: adaptive_strategy.c, and those of perf/reference. */
#ifndef NJ_SCHED_THREAD_STRATEGY_INTERNAL_H
#define NJ_SCHED_THREAD_STRATEGY_INTERNAL_H

#include "sched/thread_strategy.h"

/* In the order of struct nj_strategy_counters. */
enum nj__count {
    NJ__COUNT_PC,
    NJ__COUNT_PIC,
    NJ__COUNT_PEC,
    NJ__COUNT_EPC,
    NJ__COUNT_REJECTED,
    NJ__COUNT_DISPATCH_REJECTED,
    NJ__COUNT_RECRUITS_SENT,
    NJ__COUNT_RECRUITS_USEFUL,
    NJ__COUNT_RECRUITS_WASTED,
    NJ__COUNT_RECRUITS_MISSED,
    NJ__COUNT_RECRUITS_SPARED
};

void nj__count(struct nj_strategy *s, enum nj__count what);

/* Consume it by nj_mode_choose(). `leave` is called where a recruit makes a difference: true, if
 * production was left and another thread is sure to take over. */
bool nj__consume_by_mode(struct nj_strategy *s, struct nj_task *task, bool tagged,
                         bool (*leave)(struct nj_strategy *));

enum nj_task_type nj__type_of(const struct nj_strategy *s, const struct nj_task *task);
/* On another thread, or rejected. */
void nj__execute(struct nj_strategy *s, struct nj_task *task);
/* Queue the recruit that nj__word_leave() or nj__word_dispatch() wrote down, with a reference until
 * it was there. False: refused, and the word says so. */
bool nj__send_recruit(struct nj_strategy *s);
/* The producer would consume a task that may block. True: another thread is sure to produce, or
 * does, or will be sent for by whoever brings the next task. False: none can be had, and this one
 * still is the producer. */
bool nj__leave_to_others(struct nj_strategy *s);

bool nj__stopped(const struct nj_strategy *s);

/* This thread is the producer. RESTED: there was nothing, and somebody will ask again. OTHERS:
 * another thread produces. `*is_recruit` is false when it was counted as useful. `seat` is for
 * nj_strategy_ops.rest. */
enum nj__end { NJ__RESTED, NJ__OTHERS, NJ__STOPPED };
enum nj__end nj__produce_and_consume(struct nj_strategy *s, bool *is_recruit, int *seat);

#endif
