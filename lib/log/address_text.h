/* SPDX-License-Identifier: BSD-3-Clause */
/* Text of IP addresses and prefixes. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/types.h"

/* "2001:db8::2", or "198.18.0.2". */
#define NJ_ADDRESS_TEXT_BYTES 48u
const char *nj_address_text(const struct nj_addr *ip, char out[NJ_ADDRESS_TEXT_BYTES]);

/* "192.0.2.0/24". `bits` counts among the 128 of an IPv6 (or v4-mapped) address. */
#define NJ_NETWORK_TEXT_BYTES (NJ_ADDRESS_TEXT_BYTES + 4u)
const char *nj_network_text(const struct nj_addr *ip, unsigned bits,
                            char out[NJ_NETWORK_TEXT_BYTES]);

/* Parse an address of either family. The whole text must match; v4-mapped text is rejected. */
bool nj_address_parse(const char *text, size_t n_bytes, struct nj_addr *out);

/* Parse an address with an optional "/BITS", of 32 or 128; the default is all bits. */
bool nj_prefix_parse(const char *text, size_t n_bytes, struct nj_addr *out, unsigned *bits);
