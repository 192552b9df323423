/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of throughput: transfer times over a link of fixed rate, by round trip, loss and
 * buffer. It is the same on every machine, so a worse loss recovery fails like a unit test. */
#pragma once

#include <stdint.h>

/* Print the table, or compare it with `golden_file`. Returns the exit status. */
int nj_tsim_golden(const char *golden_file, uint32_t jobs);
