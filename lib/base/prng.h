/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Seeded pseudo-random numbers (splitmix64). One generator per purpose, so that a change in one
 * consumer does not shift the numbers of another. Not for secrets.
 */
#pragma once

#include <stdint.h>

struct nj_prng {
    uint64_t state;
};

static inline void nj_prng_init(struct nj_prng *p, uint64_t seed)
{
    p->state = seed;
}

static inline uint64_t nj_prng_next(struct nj_prng *p)
{
    uint64_t z = (p->state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* A number in 0..n-1; n > 0. The bias is below 2^-32 for every n we use. */
static inline uint32_t nj_prng_below(struct nj_prng *p, uint32_t n)
{
    return (uint32_t)(((nj_prng_next(p) >> 32) * n) >> 32);
}
