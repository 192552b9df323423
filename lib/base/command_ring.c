/* SPDX-License-Identifier: BSD-3-Clause */
/* A ring of pointers to commands, with one producer and one consumer. Contract: command_ring.h. */
#include "base/command_ring.h"

#include "base/relaxed_atomics.h"

bool nj_command_ring_put(struct nj_command_ring *ring, struct nj_command *command)
{
    uint32_t put = nj_load_relaxed(&ring->n_put);

    if (put - atomic_load_explicit(&ring->n_done, memory_order_acquire) == NJ_COMMANDS_MAX)
        return false;
    nj_store_relaxed(&command->is_done, false);
    ring->slot[put % NJ_COMMANDS_MAX] = command;
    atomic_store_explicit(&ring->n_put, put + 1, memory_order_release);
    return true;
}

uint32_t nj_command_ring_run(struct nj_command_ring *ring, void *target, nj_ns now)
{
    uint32_t put = atomic_load_explicit(&ring->n_put, memory_order_acquire);
    uint32_t n = 0;

    for (uint32_t i = ring->n_run; i != put; i++) {
        struct nj_command **slot = &ring->slot[i % NJ_COMMANDS_MAX], *command = *slot;
        n += command != NULL;
        if (command && !command->run(command, target, now))
            continue;
        *slot = NULL;
        if (i == ring->n_run)
            atomic_store_explicit(&ring->n_done, ++ring->n_run, memory_order_release);
        /* The last access: the producer may free it from here on. */
        if (command)
            atomic_store_explicit(&command->is_done, true, memory_order_release);
    }
    return n;
}
