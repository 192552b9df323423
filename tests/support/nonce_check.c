/* SPDX-License-Identifier: BSD-3-Clause */
#include "support/nonce_check.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "tls/aead.h"

struct use {
    uint8_t key[NJ_TLS_KEY_BYTES_MAX], nonce[NJ_TLS_IV_BYTES];
    uint16_t cipher; /* NJ_TLS_NO_CIPHER: a free slot */
};

static struct use *table; /* open addressing */
static uint32_t n_slots, n_seen;
static bool was_reused;

void __real_nj_tls_aead_begin(struct nj_tls_aead_op *op, struct nj_tls_aead *a,
                              const struct nj_tls_expanded *e, bool is_sealing,
                              const uint8_t *nonce, const uint8_t *aad, uint32_t n_aad);
void __wrap_nj_tls_aead_begin(struct nj_tls_aead_op *op, struct nj_tls_aead *a,
                              const struct nj_tls_expanded *e, bool is_sealing,
                              const uint8_t *nonce, const uint8_t *aad, uint32_t n_aad);

/* The slot of this use, or the free one where it belongs. */
static struct use *find(const struct use *u)
{
    uint64_t hash = 0xcbf29ce484222325ull;

    for (uint32_t i = 0; i < sizeof *u; i++)
        hash = (hash ^ ((const uint8_t *)u)[i]) * 0x100000001b3ull;
    uint32_t at = (uint32_t)(hash >> 24) & (n_slots - 1);
    while (table[at].cipher != NJ_TLS_NO_CIPHER && memcmp(&table[at], u, sizeof *u) != 0)
        at = (at + 1) & (n_slots - 1);
    return &table[at];
}

static void grow(void)
{
    struct use *former = table;
    uint32_t n_former = n_slots;

    n_slots = n_slots ? 2 * n_slots : 4096;
    table = calloc(n_slots, sizeof *table);
    NJ_CHECK(table);
    for (uint32_t i = 0; i < n_former; i++)
        if (former[i].cipher != NJ_TLS_NO_CIPHER)
            *find(&former[i]) = former[i];
    free(former);
}

static void note(const struct nj_tls_expanded *e, const uint8_t *nonce)
{
    struct use u = {.cipher = e->cipher};

    memcpy(u.key, e->key, nj_tls_key_bytes(e->cipher));
    memcpy(u.nonce, nonce, sizeof u.nonce);
    if (n_seen >= n_slots / 2)
        grow();
    struct use *slot = find(&u);
    was_reused |= slot->cipher != NJ_TLS_NO_CIPHER;
    *slot = u;
    n_seen++;
}

void __wrap_nj_tls_aead_begin(struct nj_tls_aead_op *op, struct nj_tls_aead *a,
                              const struct nj_tls_expanded *e, bool is_sealing,
                              const uint8_t *nonce, const uint8_t *aad, uint32_t n_aad)
{
    if (is_sealing)
        note(e, nonce);
    __real_nj_tls_aead_begin(op, a, e, is_sealing, nonce, aad, n_aad);
}

void nj_test_nonces_forget(void)
{
    if (n_seen > 0)
        memset(table, 0, n_slots * sizeof *table);
    n_seen = 0;
    was_reused = false;
}

void nj_test_nonces_free(void)
{
    free(table);
    table = NULL;
    n_slots = n_seen = 0;
    was_reused = false;
}

bool nj_test_nonce_was_reused(void)
{
    return was_reused;
}

uint32_t nj_test_nonces_seen(void)
{
    return n_seen;
}
