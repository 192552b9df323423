/* SPDX-License-Identifier: BSD-3-Clause */
/* The integer arithmetic of CUBIC (RFC 9438 4.2), exposed for tests. Pure functions; windows in
 * bytes. */
#pragma once

#include <stdint.h>

/* The largest r with r^3 <= n. */
uint32_t nj__cube_root(uint64_t n);

/* Milliseconds that the curve takes to rise by `n_bytes` <= 2^30 to its plateau. */
uint32_t nj__cubic_k_ms(uint32_t n_bytes, uint32_t mss);

/* The window at `t_ms` of a curve whose plateau of `origin` bytes is at `k_ms`. */
uint32_t nj__cubic_window(uint32_t origin, uint32_t k_ms, uint64_t t_ms, uint32_t mss);
