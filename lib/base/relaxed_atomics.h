/* SPDX-License-Identifier: BSD-3-Clause */
/* Relaxed atomic access to statistics. Any thread may read them; no other data is published through
 * them. */
#pragma once

#include <stdatomic.h>

#define nj_load_relaxed(p)     atomic_load_explicit((p), memory_order_relaxed)
#define nj_store_relaxed(p, v) atomic_store_explicit((p), (v), memory_order_relaxed)
#define nj_add_relaxed(p, n)   atomic_fetch_add_explicit((p), (n), memory_order_relaxed)

/* Add to a counter that only this thread writes: needs no locked instruction. */
#define nj_add_single_writer(p, n) nj_store_relaxed((p), nj_load_relaxed(p) + (n))
