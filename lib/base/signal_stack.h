/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A signal stack for the calling thread (sigaltstack(2)): a handler with SA_ONSTACK then runs also
 * where the thread's own stack, or the stack of a fiber on it, has overflowed.
 */
#ifndef NJ_BASE_SIGNAL_STACK_H
#define NJ_BASE_SIGNAL_STACK_H

/* Room for a handler that unwinds, besides what the kernel saves of the CPU's registers. */
#define NJ_ALTSTACK_BYTES (64u << 10)

/* Give the calling thread a signal stack with a guard page below it. A thread that has one keeps
 * it. The result is for nj_altstack_end(); NULL when the thread had one or there is no memory: such
 * a thread runs as before. */
void *nj_altstack_begin(void);
/* Take it away again. The same thread; NULL is fine. */
void nj_altstack_end(void *stack);

#endif
