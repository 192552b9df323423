/* SPDX-License-Identifier: BSD-3-Clause */
/* How many of the process's descriptors large files may have, which are open while they are kept or
 * read. Any thread. */
#ifndef NJ_STORE_OPEN_FILES_H
#define NJ_STORE_OPEN_FILES_H

#include <stdbool.h>
#include <stdint.h>

#include "store/file_store.h"

/* Of the descriptors that large files may have, one part in so many is left to files that are read
 * and not kept, and to those that wait for their close(2). */
#define NJ__FDS_NOT_KEPT 8u

/* Descriptors that large files leave to others. */
uint32_t nj__fds_spare(const struct nj_file_store_options *o);
/* Is `fd` one of the last `n_spare`? Of the limit as it is now a quarter is the most. */
bool nj__fds_is_spare(int fd, uint32_t n_spare);
/* Large files that are kept open, unless more of them are being read, by the limit as it is now. */
uint32_t nj__fds_kept_max(uint32_t n_spare);

#endif
