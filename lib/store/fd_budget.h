/* SPDX-License-Identifier: BSD-3-Clause */
/* The share of the process's descriptors that large files may use. Large files are open while they
 * are cached or read. Any thread may call. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "store/file_store.h"

/* This fraction (1/N) of the descriptors for large files is reserved for files that are not cached
 * and for files that wait for close(2). */
#define NJ__FDS_UNCACHED_DIV 8u

/* Descriptors reserved for other uses than large files. */
uint32_t nj__fds_reserved(const struct nj_file_store_options *o);
/* Is `fd` among the last `n_reserved` below the current limit? At most a quarter of the limit
 * counts as reserved. */
bool nj__fds_is_reserved(int fd, uint32_t n_reserved);
/* Upper bound of cached large files under the current limit. More may be open while they are read.
 */
uint32_t nj__fds_cached_max(uint32_t n_reserved);
