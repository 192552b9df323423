/* SPDX-License-Identifier: BSD-3-Clause */
/* Internals shared by thread_strategy.c, ewyk_thread_strategy.c and the strategies of
 * perf/reference. On a thread that holds a reference to the strategy. */
#pragma once

#include "strategy/thread_strategy.h"

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

/* Consumes the task by nj_run_mode_choose(). `leave` is called where a recruit changes the mode; it
 * returns true if production was left and another thread is sure to take over. */
bool nj__consume_by_mode(struct nj_strategy *s, struct nj_task *task, bool tagged,
                         bool (*leave)(struct nj_strategy *));

enum nj_task_type nj__strategy_type_of_task(const struct nj_strategy *s,
                                            const struct nj_task *task);
/* Runs the task on another thread, or rejects it. */
void nj__execute(struct nj_strategy *s, struct nj_task *task);
/* Queues the QUEUED recruit that nj__state_leave_and_recruit() or nj__state_request_production()
 * recorded; it holds a reference until it arrives. False: refused, and the record was undone. */
bool nj__queue_recruit(struct nj_strategy *s);
/* The producer leaves production before it consumes a task that may block. True: another thread
 * produces, is sure to, or is recruited when the next task is announced. False: there is no such
 * thread, and this one still produces. */
bool nj__hand_over_production(struct nj_strategy *s);

bool nj__is_stopped(const struct nj_strategy *s);

/* The loop of the producer, until there is no task. NO_TASK: it still produces. TAKEN_OVER: another
 * thread produces. `*is_recruit` becomes false when the recruit was counted as useful. */
enum nj__production_end { NJ__END_NO_TASK, NJ__END_TAKEN_OVER, NJ__END_STOPPED };
enum nj__production_end nj__produce_until_none(struct nj_strategy *s, bool *is_recruit);
/* The same, until this thread does not produce any more. */
void nj__produce_and_consume(struct nj_strategy *s, bool *is_recruit);

/* Takes a reference, as a thread that is about to run the strategy's code. False: the last one was
 * released, after a stop. */
bool nj__strategy_enter(struct nj_strategy *s);
void nj__strategy_leave(struct nj_strategy *s);
/* A recruit leaves, with its reference. `is_recruit`: it found no task. */
void nj__recruit_leave(struct nj_strategy *s, bool is_recruit);
