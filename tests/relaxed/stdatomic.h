/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Replaces the compiler's <stdatomic.h> for the code under test. Each operation becomes a call,
 * which relacy.cpp passes to relacy with the address of the object and the memory order.
 *
 * An object is plain memory here. relacy tracks it from its first operation, which must be in the
 * setup of a world (relaxed.h).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define _Atomic

typedef enum {
    memory_order_relaxed,
    memory_order_consume,
    memory_order_acquire,
    memory_order_release,
    memory_order_acq_rel,
    memory_order_seq_cst
} memory_order;

/* Source location for the history of a failure. */
struct relaxed_place {
    const char *function, *file;
    unsigned line;
};
#define RELAXED_HERE ((struct relaxed_place){__func__, __FILE__, __LINE__})

enum relaxed_rmw { RELAXED_EXCHANGE, RELAXED_ADD, RELAXED_SUB, RELAXED_AND, RELAXED_OR };

void relaxed_init(void *object, size_t n_bytes, uint64_t value, struct relaxed_place at);
uint64_t relaxed_load(const void *object, size_t n_bytes, memory_order order,
                      struct relaxed_place at);
void relaxed_store(void *object, size_t n_bytes, uint64_t value, memory_order order,
                   struct relaxed_place at);
/* `weak`: it may fail spuriously. */
bool relaxed_swap(void *object, size_t n_bytes, uint64_t *expected, uint64_t value, bool weak,
                  memory_order order, memory_order failure_order, struct relaxed_place at);
uint64_t relaxed_change(void *object, size_t n_bytes, enum relaxed_rmw how, uint64_t operand,
                        memory_order order, struct relaxed_place at);

/* Converts `value` to the type of the object. */
#define RELAXED_CAST(object, value)                                                                \
    __extension__({                                                                                \
        __typeof__(((void)0, *(object))) relaxed_value = (__typeof__(relaxed_value))(value);       \
        relaxed_value;                                                                             \
    })
#define RELAXED_CHANGE(object, how, operand, order)                                                \
    RELAXED_CAST(object, relaxed_change((object), sizeof *(object), (how), (uint64_t)(operand),    \
                                        (order), RELAXED_HERE))
#define RELAXED_SWAP(object, expected, value, weak, order, failure_order)                          \
    __extension__({                                                                                \
        uint64_t relaxed_expected = (uint64_t) * (expected);                                       \
        bool relaxed_done =                                                                        \
            relaxed_swap((object), sizeof *(object), &relaxed_expected, (uint64_t)(value), (weak), \
                         (order), (failure_order), RELAXED_HERE);                                  \
        *(expected) = RELAXED_CAST(object, relaxed_expected);                                      \
        relaxed_done;                                                                              \
    })

#define atomic_init(object, value)                                                                 \
    (*(object) = (value),                                                                          \
     relaxed_init((object), sizeof *(object), (uint64_t) * (object), RELAXED_HERE))
#define atomic_load_explicit(object, order)                                                        \
    RELAXED_CAST(object, relaxed_load((object), sizeof *(object), (order), RELAXED_HERE))
#define atomic_store_explicit(object, value, order)                                                \
    relaxed_store((object), sizeof *(object), (uint64_t)(value), (order), RELAXED_HERE)
#define atomic_compare_exchange_strong_explicit(object, expected, value, order, failure_order)     \
    RELAXED_SWAP(object, expected, value, false, order, failure_order)
#define atomic_compare_exchange_weak_explicit(object, expected, value, order, failure_order)       \
    RELAXED_SWAP(object, expected, value, true, order, failure_order)
#define atomic_exchange_explicit(object, value, order)                                             \
    RELAXED_CHANGE(object, RELAXED_EXCHANGE, value, order)
#define atomic_fetch_add_explicit(object, n, order) RELAXED_CHANGE(object, RELAXED_ADD, n, order)
#define atomic_fetch_sub_explicit(object, n, order) RELAXED_CHANGE(object, RELAXED_SUB, n, order)
#define atomic_fetch_and_explicit(object, n, order) RELAXED_CHANGE(object, RELAXED_AND, n, order)
#define atomic_fetch_or_explicit(object, n, order)  RELAXED_CHANGE(object, RELAXED_OR, n, order)

#define atomic_load(object)            atomic_load_explicit(object, memory_order_seq_cst)
#define atomic_store(object, value)    atomic_store_explicit(object, value, memory_order_seq_cst)
#define atomic_exchange(object, value) atomic_exchange_explicit(object, value, memory_order_seq_cst)
#define atomic_fetch_add(object, n)    atomic_fetch_add_explicit(object, n, memory_order_seq_cst)
