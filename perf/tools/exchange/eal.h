/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef NJ_PERF_EXCHANGE_EAL_H
#define NJ_PERF_EXCHANGE_EAL_H

#include <stdbool.h>
#include <stdint.h>

#define EAL_LCORES_MAX 2u

/* DPDK with so many lcores on the first CPUs that we may use, memory of our own and no device.
 * False: stderr has why. */
bool eal_start(const char *program, uint32_t n_lcores);

#endif
