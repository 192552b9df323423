/* SPDX-License-Identifier: BSD-3-Clause */
/* Hashes (BLAKE2b, RFC 7693) in place of secrets that are only compared. Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct nj_secret_hash {
    uint8_t b[32];
};

struct nj_secret_hash nj_secret_hash(const void *data, size_t n_bytes);
/* In a time that does not depend on the hashes. */
bool nj_secret_hash_eq(const struct nj_secret_hash *x, const struct nj_secret_hash *y);
