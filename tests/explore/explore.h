/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A stateful model checker: runs a few threads in every interleaving.
 *
 * The code under test is the production code, compiled with -DNJ_SCHED_POINTS. Its threads are
 * contexts on one processor. At each nj__sched_point() the explorer chooses the thread that runs
 * next. It tries all choices depth first. At a state that it has seen it backtracks: it restores
 * the memory of the world and the stacks of the last choice.
 *
 * A state is the shared memory (hash()), and each thread's place and local knowledge. A place is
 * the chain of return addresses of the thread, so the code is compiled with frame pointers. The
 * local knowledge is the `seen` of nj__sched_point() and explore_add_knowledge(). With by_stack the
 * whole stacks are compared instead. Then no knowledge can be omitted, but leftovers of finished
 * calls split one state into many.
 *
 * explore_fail() reports a failure with the steps that led to it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"

struct explore_world {
    void (*begin)(void *ctx);          /* set up, and start the first threads */
    uint64_t (*hash)(const void *ctx); /* of the shared memory */
    void (*end)(void *ctx);            /* checks the final state: no thread can run */
    /* Called when a thread continues with its next access at `place`. Or NULL. */
    void (*access)(void *ctx, uint64_t place);
    void *ctx;
    void *memory; /* all memory that threads change, except stacks and explore_alloc() */
    size_t n_memory;
    bool by_stack;         /* the whole stacks are part of the state */
    uint64_t unseen;       /* a bit for each enum nj__place without a thread switch */
    const char *must_fail; /* the failure that must be found; NULL: none may occur */
};

struct explore_result {
    uint64_t n_states, n_ends;
};

/* Explores until all states are seen or must_fail occurred. Any other failure, or more than
 * `states_max` states, is printed and ends the program. */
struct explore_result explore(const struct explore_world *world, uint64_t states_max);

/* Starts a thread; in begin() and in threads. Threads of one `role` at one place are equal. */
void explore_start(void (*fn)(void *arg), void *arg, uint64_t role);
/* Memory of this world, zeroed, until the next one begins. NULL: none is left. */
void *explore_alloc(size_t n_bytes);
uint64_t explore_hash_arena(void); /* of all of it */
/* As nj__sched_point(): other threads may run here. */
void explore_step(uint64_t place, uint64_t seen);
/* Returns each of 0 to n - 1, in different runs. */
unsigned explore_choose(unsigned n);
/* Waits until the condition is true. NULL: forever. It may read shared state only. */
void explore_wait(bool (*until)(void *arg), void *arg, uint64_t place);
/* Adds to this thread's local knowledge, which is part of its state. */
void explore_add_knowledge(uint64_t what);
uint64_t explore_knowledge(void);
uint64_t explore_role(void);
void explore_set_role(uint64_t role); /* changes the remaining work of this thread */
unsigned explore_n_stuck(void); /* threads that wait forever, or for a condition that is false */
NJ_PRINTF(1, 2) void explore_note(const char *format, ...);
NJ_PRINTF(1, 2) _Noreturn void explore_fail(const char *format, ...);

/* Mixes a word into a hash. */
static inline uint64_t explore_mix(uint64_t hash, uint64_t word)
{
    hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
    return hash ^ hash >> 29;
}
