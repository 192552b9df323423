/* SPDX-License-Identifier: BSD-3-Clause */
/* Blocks of networks, with log lines. Contract: blocks.h. */
#include "mgmt/blocks.h"

#include "base/set_error.h"
#include "log/address_text.h"
#include "log/log.h"
#include "threads/os_clock.h"

static nj_ns now(void)
{
    return nj_os_clock_gettime_ns(CLOCK_MONOTONIC);
}

bool nj_mgmt_parse_network(const char *text, size_t n_bytes, struct nj_net *out)
{
    unsigned bits;

    if (!nj_prefix_parse(text, n_bytes, &out->addr, &bits))
        return false;
    out->bits = (uint8_t)(nj_addr_is_v4(&out->addr) ? 96 + bits : bits);
    return true;
}

bool nj_mgmt_block(const struct nj_mgmt_view *v, const struct nj_net *net, uint32_t seconds,
                   char *why, size_t why_bytes)
{
    char text[NJ_NETWORK_TEXT_BYTES];
    static const struct nj_addr any4 = {.b = {[10] = 0xff, [11] = 0xff}};
    const struct nj_block block = {*net, seconds > 0 ? now() + seconds * NJ_SEC : NJ_NEVER};

    if (net->bits > 128 || !nj_net_has(net, &net->addr))
        return nj_set_error(why, why_bytes, "bits after the prefix are set") == 0;
    if (!nj_addr_is_v4(&net->addr) && nj_net_has(net, &any4))
        return nj_set_error(why, why_bytes,
                            "IPv4 addresses are below ::ffff:0:0 of this network: "
                            "choose a longer prefix") == 0;
    if (seconds > NJ_BLOCK_SECONDS_MAX)
        return nj_set_error(why, why_bytes, "expected at most %u seconds", NJ_BLOCK_SECONDS_MAX) ==
               0;
    if (!nj_policies_block(v->policies, &block, why, why_bytes))
        return false;
    nj_network_text(&net->addr, net->bits, text);
    if (seconds > 0)
        nj_log(NJ_LEVEL_INFO, "policy: %s is blocked for %u s", text, seconds);
    else
        nj_log(NJ_LEVEL_INFO, "policy: %s is blocked", text);
    return true;
}

bool nj_mgmt_unblock(const struct nj_mgmt_view *v, const struct nj_net *net, char *why,
                     size_t why_bytes)
{
    char text[NJ_NETWORK_TEXT_BYTES];

    if (!nj_policies_unblock(v->policies, net, why, why_bytes))
        return false;
    nj_log(NJ_LEVEL_INFO, "policy: %s is no longer blocked",
           nj_network_text(&net->addr, net->bits, text));
    return true;
}

uint32_t nj_mgmt_blocks(const struct nj_mgmt_view *v, struct nj_mgmt_block out[NJ_BLOCKS_MAX])
{
    struct nj_block block[NJ_BLOCKS_MAX];
    uint32_t n = nj_policies_blocks(v->policies, block);
    nj_ns at = now();

    for (uint32_t i = 0; i < n; i++) {
        nj_ns left = block[i].until > at ? block[i].until - at : 0;
        out[i] = (struct nj_mgmt_block){.net = block[i].net};
        if (block[i].until != NJ_NEVER)
            out[i].seconds_left = left > 0 ? (uint32_t)((left + NJ_SEC - 1) / NJ_SEC) : 1;
    }
    return n;
}
