/* SPDX-License-Identifier: BSD-3-Clause */
#include "shard/steer.h"

#include <rte_thash.h>

#include "base/assert.h"
#include "base/limits.h"

_Static_assert(NJ_SHARDS_MAX <= UINT8_MAX, "an owner is one byte");

const uint8_t nj_rss_key[NJ_RSS_KEY_BYTES] = {
    0x6d, 0x5a, 0x6d, 0x5a, 0x6d, 0x5a, 0x6d, 0x5a, 0x6d, 0x5a, 0x6d, 0x5a, 0x6d, 0x5a,
    0x6d, 0x5a, 0x6d, 0x5a, 0x6d, 0x5a, 0x6d, 0x5a, 0x6d, 0x5a, 0x6d, 0x5a, 0x6d, 0x5a,
    0x6d, 0x5a, 0x6d, 0x5a, 0x6d, 0x5a, 0x6d, 0x5a, 0x6d, 0x5a, 0x6d, 0x5a};

void nj_steer_init(struct nj_steer *s, enum nj_steering mode, uint32_t self, uint32_t n_shards,
                   uint32_t reta_size)
{
    NJ_CHECK(n_shards >= 1 && n_shards <= NJ_SHARDS_MAX && self < n_shards);
    NJ_CHECK(reta_size <= NJ_RETA_MAX && (reta_size & (reta_size - 1)) == 0);
    *s =
        (struct nj_steer){.mode = mode, .self = self, .n_shards = n_shards, .reta_size = reta_size};
    for (uint32_t i = 0; i < reta_size; i++)
        s->owner[i] = (uint8_t)(i % n_shards);
    uint32_t raw[NJ_RSS_KEY_BYTES / 4];
    memcpy(raw, nj_rss_key, sizeof raw);
    rte_convert_rss_key(raw, s->key_be, NJ_RSS_KEY_BYTES);
}

/* Two IPv6 addresses and the ports: the 36 bytes that a key of 40 is long enough for. */
#define WORDS_MAX 9u

static uint32_t put_address(uint32_t *words, uint32_t n, const struct nj_addr *a)
{
    for (unsigned i = 0; i < sizeof a->b; i += 4) {
        uint32_t be;
        memcpy(&be, &a->b[i], 4);
        words[n++] = rte_be_to_cpu_32(be);
    }
    return n;
}

uint32_t nj_steer_hash(const struct nj_steer *s, const struct nj_tuple *t)
{
    /* rte_softrss_be() wants host order words: addresses, then both ports in one word. */
    uint32_t words[WORDS_MAX], n = 0, ports = (uint32_t)t->rport << 16 | t->lport;

    if (nj_addr_is_v4(&t->remote)) {
        words[n++] = rte_be_to_cpu_32(nj_addr_to_v4(&t->remote));
        words[n++] = rte_be_to_cpu_32(nj_addr_to_v4(&t->local));
    } else {
        n = put_address(words, n, &t->remote);
        n = put_address(words, n, &t->local);
    }
    words[n++] = ports;
    return rte_softrss_be(words, n, (const uint8_t *)s->key_be);
}
