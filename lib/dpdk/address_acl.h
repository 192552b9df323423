/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * On which lists an address is: networks of both families, found by rte_acl, in a few hundred
 * nanoseconds however many there are. Built anew when a list changes; then it is read only.
 */
#ifndef NJ_DPDK_ADDRESS_ACL_H
#define NJ_DPDK_ADDRESS_ACL_H

#include <stddef.h>
#include <stdint.h>

#include "base/types.h"

struct nj_network {
    struct nj_addr addr; /* the bits behind the prefix are 0 */
    uint8_t bits;        /* of the 128; an IPv4 /24 has 96 + 24 */
    uint16_t lists;      /* bit i: it is on list i; not 0 */
};

struct nj_acl;

/* Needs the EAL. NULL with the reason. `networks` are sorted, and those that are the same become
 * one; otherwise they stay the caller's. */
struct nj_acl *nj_acl_new(struct nj_network *networks, uint32_t n, char *why, size_t why_bytes);
void nj_acl_free(struct nj_acl *acl);
uint32_t nj_acl_n_networks(const struct nj_acl *acl);

/* Bit i: it is on list i. `acl` is a struct nj_acl. Any number of threads. */
uint32_t nj_acl_lists(const void *acl, const struct nj_addr *addr);

#endif
