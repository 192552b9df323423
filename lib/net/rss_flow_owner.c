/* SPDX-License-Identifier: BSD-3-Clause */
/* Toeplitz hash and redirection table in software, as RSS of a NIC (rte_thash). */
#include "net/rss_flow_owner.h"

#include <string.h>

#include <rte_thash.h>

#include "base/assert.h"
#include "base/limits.h"

_Static_assert(NJ_SHARDS_MAX <= UINT8_MAX, "an owner is one byte");

/* The 32 bits of the key from bit `at` on, which input bit `at` XORs into the hash. */
static uint32_t key_window(const struct nj_rss_key *key, unsigned at)
{
    uint64_t bits = 0;

    for (unsigned i = 0; i < 5; i++)
        bits = bits << 8 | (at / 8 + i < NJ_RSS_KEY_BYTES ? key->b[at / 8 + i] : 0);
    return (uint32_t)(bits >> (8 - at % 8));
}

/* Do the lowest bits of the last two bytes of an input reach all values of the lowest bits of the
 * hash? They do when what they add is of full rank (elimination over GF(2)). */
static bool is_full_rank(const struct nj_rss_key *key, unsigned n_input_bits, unsigned n_port_bits,
                         unsigned n_hash_bits)
{
    uint32_t pivot[32] = {0};
    unsigned rank = 0;

    for (unsigned i = 1; i <= n_port_bits; i++) {
        uint32_t row = key_window(key, n_input_bits - i) & ((1u << n_hash_bits) - 1);
        while (row && pivot[__builtin_ctz(row)])
            row ^= pivot[__builtin_ctz(row)];
        if (row) {
            pivot[__builtin_ctz(row)] = row;
            rank++;
        }
    }
    return rank == n_hash_bits;
}

bool nj_rss_key_spreads(const struct nj_rss_key *key)
{
    static const unsigned n_input_bits[] = {8 * 12, 8 * 36}; /* of IPv4, of IPv6 */

    for (unsigned i = 0; i < 2; i++)
        if (!is_full_rank(key, n_input_bits[i], 7, 7) ||
            !is_full_rank(key, n_input_bits[i], 15, 11))
            return false;
    return true;
}

_Static_assert(NJ_RETA_MAX == 1u << 11, "what nj_rss_key_spreads() looks at");
_Static_assert(NJ_ACTIVE_PORTS == 1u << 15, "what nj_rss_key_spreads() looks at");

void nj_steer_init(struct nj_steer *s, const struct nj_rss_key *key, enum nj_steer_mode mode,
                   uint32_t self, uint32_t n_shards, uint32_t reta_size)
{
    static const struct nj_rss_key none;

    NJ_CHECK(n_shards >= 1 && n_shards <= NJ_SHARDS_MAX && self < n_shards);
    NJ_CHECK(n_shards == 1 || memcmp(key, &none, sizeof none) != 0);
    NJ_CHECK(reta_size <= NJ_RETA_MAX && (reta_size & (reta_size - 1)) == 0);
    *s =
        (struct nj_steer){.mode = mode, .self = self, .n_shards = n_shards, .reta_size = reta_size};
    for (uint32_t i = 0; i < reta_size; i++)
        s->owner[i] = (uint8_t)(i % n_shards);
    uint32_t raw[NJ_RSS_KEY_BYTES / 4];
    memcpy(raw, key->b, sizeof raw);
    rte_convert_rss_key(raw, s->key_be, NJ_RSS_KEY_BYTES);
    explicit_bzero(raw, sizeof raw);
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
