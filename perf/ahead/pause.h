/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A server that consumes after every k requests that it has parsed. nightjar parses the whole input
 * of a connection first; here the linker puts a wrapper in front of nj_h2_input()
 * (--wrap), which gives it the input in parts and calls nj__conn_serve_requests() after each.
 */
#ifndef NJ_PERF_AHEAD_PAUSE_H
#define NJ_PERF_AHEAD_PAUSE_H

#include <stdint.h>

/* Of one thread; 0: as nightjar does. */
void pause_after(uint32_t n_requests);

#endif
