/* SPDX-License-Identifier: BSD-3-Clause */
/* Bytes of a file and the proof that they are of one version of it. Any number of threads may read
 * at once; none of them has the store's lock. */
#ifndef NJ_STORE_FILE_READ_H
#define NJ_STORE_FILE_READ_H

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>

#include "store/file_cache.h"

/* A change within the same tick as the one before leaves no trace in the times: what was changed so
 * shortly ago may change again unseen. */
bool nj__file_is_racy(const struct nj__file_id *id);

/* Is it on a file system that needs no other machine, nor a process, to answer? */
bool nj__file_is_local(int fd);

/* The errno of a read that says nothing of the file: the system has no memory for it. */
static inline bool nj__file_lacks_memory(int err)
{
    return err == EAGAIN || err == ENOMEM;
}

/* Where the system has no memory for a read, it is asked again so often, and so much later. */
#define NJ__FILE_READ_WAITS   10u
#define NJ__FILE_READ_WAIT_NS 10000000

/* Read exactly `n_bytes`. False: the file is shorter, or broken, or the system has no memory. */
bool nj__file_read(int fd, uint8_t *out, uint64_t n_bytes, uint64_t offset);

/* The same of a large file that was opened a while ago. False also when it is not what it was then,
 * as far as the kernel tells, or is broken; from then on always. Where the descriptor has O_DIRECT,
 * `out`, `offset` and `n_room`, the bytes for which there is room, are multiples of 4096. */
bool nj__file_read_piece(struct nj__file *f, uint8_t *out, uint64_t n_bytes, uint64_t n_room,
                         uint64_t offset);

/* Its parts, for who reads otherwise; not before the file is settled, see struct nj__file. */

/* After a read: was that of the version that was opened? A system call, which blocks where the file
 * system is another machine's. */
bool nj__file_is_unchanged(struct nj__file *f);
/* It was not, or could not be read: from now on no read succeeds. */
void nj__file_spoil(struct nj__file *f);

#endif
