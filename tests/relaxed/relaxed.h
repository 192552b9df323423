/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Runs a few threads under C11's memory model, with the relacy race detector.
 *
 * The code under test is lib/strategy, compiled unchanged with the stdatomic.h of this folder. Its
 * threads are contexts on one processor. Before each atomic operation relacy chooses the thread
 * that runs next, and a load returns any value that its memory order allows. A world is run many
 * times with different choices; the number of a run reproduces it.
 *
 * Limits of relacy: a load never returns a store that comes later in the run (load buffering); of
 * older values it returns the last two; a compare-and-swap, even a failing one, sees the last
 * value.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define RELAXED_THREADS_MAX 5u

struct relaxed_world {
    const char *name;
    uint32_t n_threads;
    /* Runs before all threads, and happens before all their operations. Initialises all atomics. */
    void (*begin)(const struct relaxed_world *);
    void (*thread)(unsigned i);
    void (*end)(void); /* after all threads: checks the result */
    const void *model; /* the parameters of begin() */
};

extern const struct relaxed_world relaxed_strategy_worlds[], relaxed_reserved_worlds[];

/* context.c: clears the must-not-block tag of all threads. Before each run. */
void relaxed_reset_noblock(void);

/* Performs `n_runs` runs from number `first`. False: a failure was found and printed. */
bool relaxed_run(const struct relaxed_world *world, uint64_t first, uint32_t n_runs);

/* In threads: */
unsigned relaxed_self(void);
unsigned relaxed_choose(unsigned n); /* 0 to n - 1 */
/* Ends the run, which fails. */
void relaxed_check(bool is, const char *what, struct relaxed_place at);
#define CHECK(is, what) relaxed_check((is), (what), RELAXED_HERE)

/* Accesses of plain memory. relacy reports a data race: two accesses, at least one of them a write,
 * that are not ordered by happens-before. */
void relaxed_reads(const void *object, struct relaxed_place at);
void relaxed_writes(void *object, struct relaxed_place at);
#define READS(object)  relaxed_reads((object), RELAXED_HERE)
#define WRITES(object) relaxed_writes((object), RELAXED_HERE)

/*
 * Variables of the world that are neither atomic nor declared with READS() and WRITES() are
 * invisible to the model: every thread sees their last value, and they order nothing. A thread
 * waits here until one of them has changed. If all remaining threads wait, the run fails with a
 * deadlock.
 */
void relaxed_wait(bool (*until)(void));
void relaxed_changed(void);
