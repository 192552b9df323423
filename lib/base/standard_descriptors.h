/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Descriptors 0 to 2 that a program was started without (`<&-`, a careless parent). The next file,
 * socket or eventfd that the process opens would get such a number, and what is printed to standard
 * output or standard error would be written into it.
 */
#pragma once

/* Open /dev/null for each of the descriptors 0 to 2 that is closed. Before the process opens
 * anything else, on the only thread. Returns a mask of those that were closed: 1 << descriptor;
 * or -1, with errno. */
int nj_standard_descriptors_open(void);
