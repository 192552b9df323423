/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Networks that an operator blocks for a time. A block is part of the policy that lcores adopt: its
 * connections are reset and its requests end, new connections are refused, and behind a trusted
 * proxy its requests get 403. Reloads keep blocks. Any thread but an lcore may call these; they
 * wait at most 100 ms, if lcores have not adopted many earlier changes.
 */
#pragma once

#include "config/policy_snapshots.h"
#include "mgmt/view.h"

/* Parse an address or a network, "198.18.0.7", "2001:db8::/32". Bits behind the prefix are kept. */
bool nj_mgmt_parse_network(const char *text, size_t n_bytes, struct nj_net *out);

/* The longest time, 366 days. */
#define NJ_BLOCK_SECONDS_MAX (366u * 24u * 3600u)

/* Blocks a network for `seconds`; 0: until it is unblocked. Returns false with the reason: bits
 * behind the prefix are set, all IPv4 addresses are in a network of IPv6, the time is too long, or
 * see nj_policies_block(). */
bool nj_mgmt_block(const struct nj_mgmt_view *v, const struct nj_net *net, uint32_t seconds,
                   char *why, size_t why_bytes);
/* Returns false with the reason, as if the network is not blocked. */
bool nj_mgmt_unblock(const struct nj_mgmt_view *v, const struct nj_net *net, char *why,
                     size_t why_bytes);

struct nj_mgmt_block {
    struct nj_net net;
    uint32_t seconds_left; /* rounded up; 0: it has no end */
};
/* Lists the blocks in the order in which they were made, and returns how many. */
uint32_t nj_mgmt_blocks(const struct nj_mgmt_view *v, struct nj_mgmt_block out[NJ_BLOCKS_MAX]);
