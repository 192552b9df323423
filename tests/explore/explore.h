/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Every order in which a few threads can go on.
 *
 * The code under test is the real one, compiled with -DNJ_STEPS. Its threads are contexts on one
 * processor; at each nj__step() the explorer chooses who goes on. It tries all choices, depth
 * first; where it comes to a state that it has seen, it turns back: it writes the memory of the
 * world and the stacks as they were at the last choice.
 *
 * A state is what is shared (hash()), and of each thread its place and what only it knows. A place
 * is the addresses to which the thread's functions will return, so all that runs is compiled with
 * frame pointers; what only the thread knows is what nj__step() was told and explore_know(). Or
 * threads are told apart by all that is on their stacks: then nothing can be forgotten, but what is
 * left there by calls that are over makes many states of one.
 *
 * What is wrong is told by explore_fail(), with the steps that led there.
 */
#ifndef NJ_TESTS_EXPLORE_H
#define NJ_TESTS_EXPLORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attr.h"

struct explore_world {
    void (*begin)(void *ctx);          /* set up, and start the first threads */
    uint64_t (*hash)(const void *ctx); /* of what the threads share */
    void (*end)(void *ctx);            /* nobody can go on: is that right? */
    /* A thread goes on, and its next access is at that place. Or NULL. */
    void (*access)(void *ctx, uint64_t place);
    void *ctx;
    void *memory; /* all that threads change, but for their stacks and explore_alloc() */
    size_t n_memory;
    bool by_stack;         /* threads are told apart by all that is on their stacks, too */
    uint64_t unseen;       /* a bit for each enum nj__place at which nobody comes in */
    const char *must_fail; /* this failure has to be found; NULL: none may be */
};

struct explore_result {
    uint64_t n_states, n_ends;
};

/* Until all is seen or what must fail did. Another failure is printed, and ends the program; more
 * states than `states_max` are one. */
struct explore_result explore(const struct explore_world *world, uint64_t states_max);

/* In begin(), and in threads. `role`: threads of one role and at one place are the same. */
void explore_start(void (*fn)(void *arg), void *arg, uint64_t role);
/* Memory of this world, zeroed, until the next one begins. NULL: none is left. */
void *explore_alloc(size_t n_bytes);
uint64_t explore_hash_arena(void); /* of all of it */
/* As nj__step(): others may come in. */
void explore_step(uint64_t place, uint64_t seen);
/* 0 to n - 1: all of them. */
unsigned explore_choose(unsigned n);
/* Go on when it is true. NULL: never. It may look at shared state only. */
void explore_wait(bool (*until)(void *arg), void *arg, uint64_t place);
/* What this thread knows besides: part of its state from now on. */
void explore_know(uint64_t what);
uint64_t explore_knows(void);
uint64_t explore_role(void);
void explore_set_role(uint64_t role); /* it has less, or something else, to do from now on */
unsigned explore_n_stuck(void);       /* threads that wait for ever, or for what has not come */
NJ_PRINTF(1, 2) void explore_note(const char *format, ...);
NJ_PRINTF(1, 2) _Noreturn void explore_fail(const char *format, ...);

/* Mixes a word into a hash. */
static inline uint64_t explore_mix(uint64_t hash, uint64_t word)
{
    hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
    return hash ^ hash >> 29;
}

#endif
