/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Switches between stacks, and functions that report each switch to the sanitizers. Boost.Context's
 * make_fcontext() and jump_fcontext() make the switches; they have C linkage. Only lib/sched
 * includes this header.
 *
 * jump_fcontext() preserves the callee-saved registers, MXCSR and the x87 control word. A context
 * made by make_fcontext() starts with the values of its creator.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/compiler.h"

/*
 * A process has a sanitizer's run-time library if the program was built with it, and this library
 * perhaps not: so authors of handlers test them (nightjar/test.h). Without it these are NULL.
 */
#define NJ__WEAK __attribute__((weak))
void __sanitizer_start_switch_fiber(void **fake, const void *bottom, size_t n_bytes) NJ__WEAK;
void __sanitizer_finish_switch_fiber(void *fake, const void **bottom, size_t *n_bytes) NJ__WEAK;
void __asan_unpoison_memory_region(const volatile void *at, size_t n_bytes) NJ__WEAK;
void __lsan_register_root_region(const void *at, size_t n_bytes) NJ__WEAK;
void __lsan_unregister_root_region(const void *at, size_t n_bytes) NJ__WEAK;
void *__tsan_get_current_fiber(void) NJ__WEAK;
void *__tsan_create_fiber(unsigned flags) NJ__WEAK;
void __tsan_destroy_fiber(void *fiber) NJ__WEAK;
void __tsan_switch_to_fiber(void *fiber, unsigned flags) NJ__WEAK;

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
    bool is_root_region; /* LeakSanitizer looks for pointers here */
};

#define NJ__INLINE static inline __attribute__((always_inline))

/* Must a sanitizer be told of switches? Does not change: callers keep it. */
NJ__INLINE bool nj__sanitizer_is_there(void)
{
    return __sanitizer_start_switch_fiber || __tsan_switch_to_fiber;
}

/* Directly before the jump, in the function that jumps. */
NJ__INLINE void nj__sanitizer_start_switch(bool is_there, struct nj__switch_stack *from,
                                           const struct nj__switch_stack *to)
{
    if (nj_likely(!is_there))
        return;
    if (__sanitizer_start_switch_fiber)
        __sanitizer_start_switch_fiber(&from->fake, to->bottom, to->n_bytes);
    if (__tsan_switch_to_fiber)
        __tsan_switch_to_fiber(to->tsan, 0);
}

/* Directly after the jump, on the new stack. */
NJ__INLINE void nj__sanitizer_finish_switch(bool is_there, struct nj__switch_stack *me,
                                            struct nj__switch_stack *from)
{
    if (nj_likely(!is_there) || !__sanitizer_finish_switch_fiber)
        return;
    __sanitizer_finish_switch_fiber(me->fake, &from->bottom, &from->n_bytes);
    me->fake = NULL;
}

/* Before the first switch to a stack, and before its memory is released. */
NJ__INLINE void nj__sanitizer_prepare_stack(struct nj__switch_stack *stack)
{
    /* If its pages were released before, the old frames were never unpoisoned. */
    if (__asan_unpoison_memory_region)
        __asan_unpoison_memory_region(stack->bottom, stack->n_bytes);
    if (__lsan_register_root_region && !stack->is_root_region) {
        __lsan_register_root_region(stack->bottom, stack->n_bytes);
        stack->is_root_region = true;
    }
    if (__tsan_create_fiber && !stack->tsan) /* the call is slow */
        stack->tsan = __tsan_create_fiber(0);
}

NJ__INLINE void nj__sanitizer_forget_stack(struct nj__switch_stack *stack)
{
    if (__asan_unpoison_memory_region)
        __asan_unpoison_memory_region(stack->bottom, stack->n_bytes);
    if (__lsan_unregister_root_region && stack->is_root_region)
        __lsan_unregister_root_region(stack->bottom, stack->n_bytes);
    if (__tsan_destroy_fiber && stack->tsan)
        __tsan_destroy_fiber(stack->tsan);
}

/* Registers the running stack, before the first switch away from it. */
NJ__INLINE void nj__sanitizer_register_current(bool is_there, struct nj__switch_stack *stack)
{
    if (nj_unlikely(is_there) && __tsan_get_current_fiber)
        stack->tsan = __tsan_get_current_fiber();
}
