/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The lists that an address is on. A lookup takes a few hundred nanoseconds for any number of
 * networks of both families (rte_acl). An ACL is immutable: when a list changes a new one is built.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/types.h"

struct nj_network {
    struct nj_addr addr; /* the bits after the prefix are 0 */
    uint8_t bits;        /* prefix length of 128; an IPv4 /24 has 96 + 24 */
    uint16_t lists;      /* bit i: the network is on list i; not 0 */
};

struct nj_acl;

/* Builds an ACL; the EAL must be initialised. NULL on failure, with the reason in `why`. Sorts
 * `networks` in place and merges duplicates; the array stays the caller's. */
struct nj_acl *nj_acl_new(struct nj_network *networks, uint32_t n, char *why, size_t why_bytes);
void nj_acl_free(struct nj_acl *acl);

/* Bit i of the result: the address is on list i. `acl` is a struct nj_acl. Any thread. */
uint32_t nj_acl_lookup(const void *acl, const struct nj_addr *addr);
