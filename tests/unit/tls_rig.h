/* SPDX-License-Identifier: BSD-3-Clause */
/* What tests of lib/tls share: hexadecimal bytes, seeds, back ends, and pieces of memory cut at
 * random. */
#pragma once

#include <criterion/criterion.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "base/prng.h"
#include "base/types.h"
#include "tls/record.h"

#define RIG_PIECES_MAX 40u

static const enum nj_tls_cipher rig_ciphers[NJ_TLS_CIPHERS] = {
    NJ_TLS_AES_128_GCM_SHA256, NJ_TLS_AES_256_GCM_SHA384, NJ_TLS_CHACHA20_POLY1305_SHA256};

/* The bytes that the digits of `text` are; other characters are skipped. Returns how many. */
static inline uint32_t rig_hex(uint8_t *out, uint32_t n_max, const char *text)
{
    uint32_t n_digits = 0;

    for (; *text && *text != '\n'; text++) {
        unsigned digit;
        if (*text == ' ' || *text == '\r')
            continue;
        cr_assert_eq(sscanf((char[]){*text, 0}, "%x", &digit), 1, "no digit: %c", *text);
        cr_assert_lt(n_digits / 2, n_max);
        out[n_digits / 2] = (uint8_t)(n_digits % 2 ? out[n_digits / 2] << 4 | digit : digit);
        n_digits++;
    }
    cr_assert_eq(n_digits % 2, 0);
    return n_digits / 2;
}

static inline struct nj_prng rig_prng(uint64_t seed)
{
    const char *given = getenv("NJ_TEST_SEED");
    struct nj_prng r;

    if (given)
        seed = strtoull(given, NULL, 0);
    printf("seed %#lx (NJ_TEST_SEED)\n", (unsigned long)seed);
    nj_prng_init(&r, seed);
    return r;
}

static inline void rig_fill(struct nj_prng *r, void *p, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        ((uint8_t *)p)[i] = (uint8_t)nj_prng_next(r);
}

/* A length: often one at a boundary of blocks. */
static inline uint32_t rig_length(struct nj_prng *r, uint32_t n_max)
{
    uint32_t n = nj_prng_below(r, n_max + 1);

    if (nj_prng_below(r, 2))
        n &= ~15u;
    if (nj_prng_below(r, 3) == 0)
        n = nj_prng_below(r, nj_min_u32(n_max, 300) + 1);
    return n;
}

/* All back ends that run here: EVP, and ipsec-mb if the CPU has what it needs. */
static inline uint32_t rig_engines(struct nj_tls_aead *a[2])
{
    uint32_t n = 0;

    a[n++] = nj_tls_aead_new(NJ_TLS_ENGINE_EVP);
    cr_assert(a[0]);
    a[n] = nj_tls_aead_new(NJ_TLS_ENGINE_IPSEC_MB);
    if (a[n])
        n++;
    else
        printf("not run: ipsec-mb, which this CPU does not suit\n");
    return n;
}

static inline struct nj_tls_expanded *rig_expanded(const struct nj_tls_aead *a)
{
    void *mem = aligned_alloc(NJ_TLS_EXPANDED_ALIGN, nj_tls_expanded_bytes(a));

    cr_assert(mem);
    return memset(mem, 0, nj_tls_expanded_bytes(a));
}

/* Cut `n` bytes into pieces, some of which are empty or small. Returns how many pieces. */
static inline uint32_t rig_cut(struct nj_prng *r, uint32_t n, uint32_t lengths[RIG_PIECES_MAX])
{
    uint32_t n_pieces = nj_prng_below(r, 8), i = 0;

    for (; i < n_pieces; i++) {
        uint32_t n_here = nj_prng_below(r, 3) ? nj_prng_below(r, n + 1) : nj_prng_below(r, 20);
        lengths[i] = nj_min_u32(n, n_here);
        n -= lengths[i];
    }
    lengths[i++] = n;
    return i;
}

/* Pieces of one block of memory; each is a block of its own in `rig_scatter()`. */
struct rig_pieces {
    struct nj_tls_src src[RIG_PIECES_MAX];
    struct nj_tls_dst dst[RIG_PIECES_MAX];
    uint32_t n;
};

/* Memory of malloc() for each piece, so that a sanitizer sees one byte too many. `from` may be
 * NULL. */
static inline void rig_scatter(struct nj_prng *r, struct rig_pieces *p, const uint8_t *from,
                               uint32_t n)
{
    uint32_t lengths[RIG_PIECES_MAX];

    p->n = rig_cut(r, n, lengths);
    for (uint32_t i = 0; i < p->n; i++) {
        uint8_t *mem = malloc(lengths[i] ? lengths[i] : 1);
        if (from) {
            memcpy(mem, from, lengths[i]);
            from += lengths[i];
        }
        p->src[i] = (struct nj_tls_src){mem, lengths[i]};
        p->dst[i] = (struct nj_tls_dst){mem, lengths[i]};
    }
}

/* Put the pieces together at `to` and free them. */
static inline void rig_gather(struct rig_pieces *p, uint8_t *to)
{
    for (uint32_t i = 0; i < p->n; i++) {
        if (to) {
            memcpy(to, p->dst[i].p, p->dst[i].n_bytes);
            to += p->dst[i].n_bytes;
        }
        free(p->dst[i].p);
    }
    p->n = 0;
}
