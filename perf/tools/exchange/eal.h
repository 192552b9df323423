/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define EAL_LCORES_MAX 2u

/* Initialises the EAL with `n_lcores` lcores (1 to EAL_LCORES_MAX) on the first CPUs that this
 * process may use, with private memory and without devices. False: failed; the reason is on
 * stderr. */
bool eal_start(const char *program, uint32_t n_lcores);
