/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A heap for OpenSSL, in memory that core dumps omit
 * (docs/adr/0014-what-a-core-dump-leaves-out.md).
 *
 * Each thread allocates from its own heap, without a lock. Any thread may free. The heap of a
 * thread that has ended goes to the next new thread. Memory is kept for later allocations, so the
 * process keeps as much as was ever in use at once.
 */
#pragma once

#include <stddef.h>

/* As malloc(3), realloc(3) and free(3), which also describe NULL and 0 bytes: an allocation of 0
 * bytes returns memory of some bytes, and resizing to 0 bytes frees. Aligned to 16 bytes. `file`
 * and `line` are OpenSSL's, and unused. Any thread. Return NULL if there is no memory. */
void *nj__openssl_malloc(size_t n_bytes, const char *file, int line);
void *nj__openssl_realloc(void *p, size_t n_bytes, const char *file, int line);
void nj__openssl_free(void *p, const char *file, int line);
