/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads file contents and verifies that all bytes are of one version. Thread-safe; call without the
 * store's lock. */
#pragma once

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>

#include "store/file_cache.h"

/* The time before which every change of a file shows in its version, if that is read by stat(2)
 * afterwards: `now_ns` of CLOCK_REALTIME less a tick of the clock of its file system. */
int64_t nj__file_current_at(const struct nj_file_version *version, int64_t now_ns);

/* Was the file changed within the last clock tick? A second change in the same tick leaves the
 * timestamps unchanged, so it would not be detected. */
bool nj__file_is_racy(const struct nj_file_version *version);

/* The same of a file system that stores whole seconds, with more of its tick left than a worker
 * waits for: the file is not to be read in chunks yet. */
bool nj__file_is_unsettled(const struct nj_file_version *version);

/* Is the file on a local file system, neither network nor FUSE? */
bool nj__file_is_local(int fd);

/* Does the errno of a read mean that the kernel lacks memory, rather than a fault of the file? */
static inline bool nj__file_is_enomem(int err)
{
    return err == EAGAIN || err == ENOMEM;
}

/* Retries of a read that fails for lack of kernel memory, and the delay between them. */
#define NJ__FILE_READ_RETRIES 10u
#define NJ__FILE_RETRY_NS     10000000

/* Read exactly `n_bytes`. Returns false if the file is shorter, on an error, or without memory. */
bool nj__file_pread_exact(int fd, uint8_t *out, uint64_t n_bytes, uint64_t offset);

/* Read the file from its start once more. Are these its first `n_bytes`? */
bool nj__file_still_has(int fd, const uint8_t *bytes, uint64_t n_bytes);

/* The same for an open large file. Also returns false if the file has changed since its open; then
 * all further reads fail. With O_DIRECT, `out`, `offset` and `n_room` (the size of `out`) are
 * multiples of 4096. */
bool nj__file_read_chunk_verified(struct nj__file *f, uint8_t *out, uint64_t n_bytes,
                                  uint64_t n_room, uint64_t offset);

/* Steps of it for callers with their own reads. Precondition: is_settled of struct nj__file. */

/* After a read: is the file still the version that was opened? Calls fstat(2), which may block on a
 * network file system. */
bool nj__file_is_unchanged(struct nj__file *f);
/* Mark the file as changed or unreadable: all further reads fail. */
void nj__file_mark_changed(struct nj__file *f);
