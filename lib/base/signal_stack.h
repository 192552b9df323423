/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A signal stack for the calling thread (sigaltstack(2)): a handler with SA_ONSTACK then runs even
 * after the thread's own stack, or the stack of a fiber on it, has overflowed.
 */
#pragma once

/* Room for a handler that unwinds, besides the CPU registers that the kernel saves. */
#define NJ_ALTSTACK_BYTES (64u << 10)

/* Give the calling thread a signal stack with a guard page below it. Returns a handle for
 * nj_altstack_remove(). Returns NULL if the thread already has a signal stack, which it keeps, or
 * if memory is short. */
void *nj_altstack_install(void);
/* Remove and free the stack. Same thread. `stack` may be NULL. */
void nj_altstack_remove(void *stack);
