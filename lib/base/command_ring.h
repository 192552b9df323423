/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Commands from one thread to another that polls: a ring of pointers with one producer and one
 * consumer. The consumer pays one relaxed load per look while the ring is empty, and no
 * read-modify-write at any time.
 *
 * A command is run in parts, so that its consumer is not held up: until run() returns true, it is
 * called again in later calls of nj_command_ring_run(). It does not hold up the commands behind it:
 * each call runs a part of every command. They begin in the order in which they were put, but a
 * short one may be complete before a long one. A command
 * belongs to the consumer from nj_command_ring_put() until nj_command_is_done(): the producer keeps
 * its memory until then, or until the consumer has ended.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/types.h"

#define NJ_COMMANDS_MAX 16u

struct nj_command {
    /* Runs a part of the command in the consumer's thread. `target` is the argument of
     * nj_command_ring_run(). True: the command is complete. */
    bool (*run)(struct nj_command *command, void *target, nj_ns now);
    _Atomic bool is_done; /* written by the consumer, cleared by nj_command_ring_put() */
};

/* Zeroed: empty. */
struct nj_command_ring {
    _Atomic uint32_t n_put;  /* written by the producer; as the others modulo 2^32 */
    uint32_t n_run;          /* the consumer's own: all before it are complete */
    _Atomic uint32_t n_done; /* the same, for the producer */
    /* Between n_done and n_put they are the consumer's. NULL there: complete, behind one that is
     * not. */
    struct nj_command *slot[NJ_COMMANDS_MAX];
};

/* Returns false, and does nothing, while NJ_COMMANDS_MAX commands are in the ring, from the first
 * one that is not complete on. The producer; several threads that put commands need a lock of their
 * own. */
bool nj_command_ring_put(struct nj_command_ring *ring, struct nj_command *command);

/* Is the command complete? Then what it wrote is visible, and its memory is the caller's. Any
 * thread. */
static inline bool nj_command_is_done(const struct nj_command *command)
{
    return atomic_load_explicit(&command->is_done, memory_order_acquire);
}

/* Is there a command to run? The consumer. */
static inline bool nj_command_ring_has_any(const struct nj_command_ring *ring)
{
    return atomic_load_explicit(&ring->n_put, memory_order_relaxed) != ring->n_run;
}

/* Runs a part of each command in the ring. Returns how many were run, in part or completely. The
 * consumer. */
uint32_t nj_command_ring_run(struct nj_command_ring *ring, void *target, nj_ns now);
