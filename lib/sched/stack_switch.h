/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Switches between stacks: Boost.Context's make_fcontext() and jump_fcontext(), which have C
 * linkage, and the annotations that sanitizers need. For lib/sched only.
 *
 * jump_fcontext() preserves the callee-saved registers, MXCSR and the x87 control word. A context
 * made by make_fcontext() starts with the values of its creator.
 */
#pragma once

#include <stddef.h>

#if defined(__SANITIZE_ADDRESS__)
#define NJ__ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define NJ__ASAN 1
#endif
#endif
#if defined(__SANITIZE_THREAD__)
#define NJ__TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define NJ__TSAN 1
#endif
#endif

#ifdef NJ__ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#ifdef NJ__TSAN
#include <sanitizer/tsan_interface.h>
#endif

/* The result of a jump: the suspended context, and a value that it passed. */
struct nj__transfer {
    void *from;
    void *data;
};

void *make_fcontext(void *top, size_t n_bytes, void (*fn)(struct nj__transfer));
struct nj__transfer jump_fcontext(void *to, void *data);

/* A stack as the sanitizers see it. The bounds of the root's stack come from the first switch. */
struct nj__switch_stack {
    const void *bottom;
    size_t n_bytes;
    void *fake; /* ASan's fake stack while this stack is not running */
    void *tsan;
};

#define NJ__INLINE static inline __attribute__((always_inline))

/* Directly before the jump, in the function that jumps. */
NJ__INLINE void nj__sanitizer_start_switch(struct nj__switch_stack *from,
                                           const struct nj__switch_stack *to)
{
    (void)from, (void)to;
#ifdef NJ__ASAN
    __sanitizer_start_switch_fiber(&from->fake, to->bottom, to->n_bytes);
#endif
#ifdef NJ__TSAN
    __tsan_switch_to_fiber(to->tsan, 0);
#endif
}

/* Directly after the jump, on the new stack. */
NJ__INLINE void nj__sanitizer_finish_switch(struct nj__switch_stack *me,
                                            struct nj__switch_stack *from)
{
    (void)me, (void)from;
#ifdef NJ__ASAN
    __sanitizer_finish_switch_fiber(me->fake, &from->bottom, &from->n_bytes);
    me->fake = NULL;
#endif
}

/* Before the first switch to a stack, and before its memory is released. */
NJ__INLINE void nj__sanitizer_prepare_stack(struct nj__switch_stack *stack)
{
    (void)stack;
#ifdef NJ__ASAN
    /* If its pages were released before, the old frames were never unpoisoned. */
    __asan_unpoison_memory_region(stack->bottom, stack->n_bytes);
#endif
#ifdef NJ__TSAN
    if (!stack->tsan) /* the call is slow */
        stack->tsan = __tsan_create_fiber(0);
#endif
}

NJ__INLINE void nj__sanitizer_forget_stack(struct nj__switch_stack *stack)
{
    (void)stack;
#ifdef NJ__ASAN
    __asan_unpoison_memory_region(stack->bottom, stack->n_bytes);
#endif
#ifdef NJ__TSAN
    if (stack->tsan)
        __tsan_destroy_fiber(stack->tsan);
#endif
}

/* Registers the running stack, before the first switch away from it. */
NJ__INLINE void nj__sanitizer_register_current(struct nj__switch_stack *stack)
{
    (void)stack;
#ifdef NJ__TSAN
    stack->tsan = __tsan_get_current_fiber();
#endif
}
