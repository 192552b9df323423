/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A few threads under C11's memory model.
 *
 * The code under test is that of lib/sched, compiled unchanged with stdatomic.h of this folder. Its
 * threads are contexts on one processor; in front of each atomic operation relacy chooses who goes
 * on, and a load returns any value that its order allows, not only the last one. A world is run
 * many times, each with other choices; a run is repeated from its number alone.
 *
 * What relacy does not do: a load never sees a store that comes later in the run (load buffering);
 * of older values it returns the last two; a compare-and-swap, also one that fails, sees the last.
 */
#ifndef NJ_TESTS_RELAXED_H
#define NJ_TESTS_RELAXED_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define RELAXED_THREADS_MAX 5u

struct relaxed_world {
    const char *name;
    uint32_t n_threads;
    /* Before all threads, and ordered before all that they do. Everything that is atomic gets its
     * value here. */
    void (*begin)(const struct relaxed_world *);
    void (*thread)(unsigned i);
    void (*end)(void); /* after all threads: is all as it should be? */
    const void *model; /* what begin() goes by */
};

extern const struct relaxed_world relaxed_strategy_worlds[], relaxed_reserved_worlds[];

/* context.c: no thread is tagged. Before each run. */
void relaxed_untag(void);

/* From run number `first`, `n_runs` of them. False: something is wrong, and was printed. */
bool relaxed_run(const struct relaxed_world *world, uint64_t first, uint32_t n_runs);

/* In threads: */
unsigned relaxed_self(void);
unsigned relaxed_choose(unsigned n); /* 0 to n - 1 */
/* Ends the run, which fails. */
void relaxed_check(bool is, const char *what, struct relaxed_place at);
#define CHECK(is, what) relaxed_check((is), (what), RELAXED_HERE)

/* Plain memory: two accesses, one of them a write, of which neither is ordered before the other,
 * are a data race, which relacy tells. */
void relaxed_reads(const void *object, struct relaxed_place at);
void relaxed_writes(void *object, struct relaxed_place at);
#define READS(object)  relaxed_reads((object), RELAXED_HERE)
#define WRITES(object) relaxed_writes((object), RELAXED_HERE)

/*
 * Variables of the world that are neither atomic nor told with READS() and WRITES() are the
 * world's own knowledge: everybody sees their last value, and they order nothing. A thread waits
 * here until one of them has changed. Where all wait that have not ended, the run fails: deadlock.
 */
void relaxed_wait(bool (*until)(void));
void relaxed_changed(void);

#endif
