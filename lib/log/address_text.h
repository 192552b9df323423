/* SPDX-License-Identifier: BSD-3-Clause */
/* Our addresses in words: what became of them is told by shard 0, and shown by others. */
#ifndef NJ_LOG_ADDRESS_TEXT_H
#define NJ_LOG_ADDRESS_TEXT_H

#include "wire/iface.h"

/* "2001:db8::2", or "198.18.0.2". */
#define NJ_ADDRESS_TEXT_BYTES 48u
const char *nj_address_text(const struct nj_addr *ip, char out[NJ_ADDRESS_TEXT_BYTES]);

/* "192.0.2.0/24" of an address and the bits of its prefix among the 128. */
#define NJ_NETWORK_TEXT_BYTES (NJ_ADDRESS_TEXT_BYTES + 4u)
const char *nj_network_text(const struct nj_addr *ip, unsigned bits,
                            char out[NJ_NETWORK_TEXT_BYTES]);

/* The address that this text is, of either family and nothing else; v4-mapped ones are none. */
bool nj_address_read(const char *text, size_t n_bytes, struct nj_addr *out);

/* The same with "/BITS" behind it, of the 32 or 128 of its family; without, these are all bits. */
bool nj_prefix_read(const char *text, size_t n_bytes, struct nj_addr *out, unsigned *bits);

/* "ready", "tentative", "duplicate", "expired". */
const char *nj_address_state(const struct nj_iface_addr *a);

/* What was told of each address already. Begins as zero. */
struct nj_address_news {
    unsigned n_told;
    struct nj_iface_addr told[NJ_ADDRS_MAX];
};

/* Print a line for each IPv6 address that came into use, or can't be used, since the last call.
 * `iface` is another thread's. */
void nj_address_tell(struct nj_address_news *news, const struct nj_iface *iface);

#endif
