/* SPDX-License-Identifier: BSD-3-Clause */
/* ClientHellos (RFC 8446 4.1.2) without a client: libssl writes one, and each use of it gets a new
 * random number and a new key share. Each 32 bytes are a key of X25519 (RFC 7748 5), so the server
 * has to compute the key exchange and its signature. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/prng.h"

#define HELLO_BYTES_MAX 2048u

struct hello {
    uint32_t n, share_at;
    uint8_t bytes[HELLO_BYTES_MAX]; /* a record */
};

/* False: libssl's ClientHello is not as expected. */
bool hello_init(struct hello *h);
void hello_renew(struct hello *h, struct nj_prng *prng);
