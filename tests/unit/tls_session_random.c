/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lib/tls: two sessions talk to each other at random, over scattered pieces, and change their keys;
 * all data arrives. A back end in between notes each (key, nonce) with which a record is sealed:
 * none comes twice, also when sealing fails.
 */
#include "tls_session_rig.h"

#define NONCES    (1u << 17) /* slots of the table */
#define PIPE      (1u << 19)
#define STEPS     3000u
#define DATA_MAX  60000u
#define FAIL_ONCE 200u /* one in so many records fails, where they may */

struct seen {
    uint8_t key[NJ_TLS_KEY_BYTES_MAX], nonce[NJ_TLS_IV_BYTES];
    uint16_t cipher;
};

static struct seen table[NONCES];
static uint32_t n_seen;
static const struct nj__tls_aead_ops *real[NJ_TLS_CIPHERS];
static struct nj__tls_aead_ops checking[NJ_TLS_CIPHERS];
static struct nj_prng *faults; /* NULL: no record fails */

static void note(const struct nj_tls_expanded *e, const uint8_t *nonce)
{
    struct seen s = {.cipher = e->cipher};
    uint64_t hash = 0;

    memcpy(s.key, e->key, sizeof s.key);
    memcpy(s.nonce, nonce, sizeof s.nonce);
    for (uint32_t i = 0; i < sizeof s; i++)
        hash = (hash ^ ((uint8_t *)&s)[i]) * 0x100000001b3ull;
    uint32_t at = (uint32_t)(hash >> 20) % NONCES;
    for (; table[at].cipher != 0; at = (at + 1) % NONCES)
        cr_assert_neq(memcmp(&table[at], &s, sizeof s), 0, "a nonce twice with one key");
    table[at] = s;
    cr_assert_lt(++n_seen, NONCES / 2);
}

static void checking_begin(struct nj_tls_aead_op *op, const uint8_t *nonce, const uint8_t *aad,
                           uint32_t n_aad)
{
    if (op->is_sealing)
        note(op->expanded, nonce);
    real[nj__tls_cipher_index(op->expanded->cipher)]->begin(op, nonce, aad, n_aad);
}

static bool checking_end_seal(struct nj_tls_aead_op *op, uint8_t *tag)
{
    bool ok = real[nj__tls_cipher_index(op->expanded->cipher)]->end_seal(op, tag);
    return ok && !(faults && nj_prng_below(faults, FAIL_ONCE) == 0);
}

static void check_nonces(struct nj_tls_aead *a)
{
    memset(table, 0, sizeof table);
    n_seen = 0;
    for (uint32_t i = 0; i < NJ_TLS_CIPHERS; i++) {
        real[i] = a->ops[i];
        checking[i] = *real[i];
        checking[i].begin = checking_begin;
        checking[i].end_seal = checking_end_seal;
        a->ops[i] = &checking[i];
    }
}

/* One end: its session, and the bytes on their way to it. */
struct end {
    struct nj_tls_session s;
    uint8_t pipe[PIPE];
    uint32_t n_pipe;
    uint64_t n_sent, n_received;
    uint32_t n_updates;
    nj_ns now; /* each record takes as long as one KeyUpdate may */
};

struct talk {
    struct nj_prng r;
    struct nj_tls_crypto c;
    struct nj_tls_expanded *expanded[2]; /* as caches: any one for any key */
    struct end ends[2];
};

/* The data is a sequence of bytes that each end knows. */
static uint8_t byte_at(uint64_t at)
{
    return (uint8_t)((at * 0x9e3779b97f4a7c15ull) >> 56);
}

static struct nj_tls_expanded *any_cache(struct talk *t)
{
    return t->expanded[nj_prng_below(&t->r, 2)];
}

static void append(struct talk *t, struct end *to, struct rig_pieces *dst, int n)
{
    static uint8_t out[PIPE];

    rig_gather(dst, out);
    if (n > 0) {
        memcpy(to->pipe + to->n_pipe, out, (uint32_t)n);
        to->n_pipe += (uint32_t)n;
    }
}

static void send_data(struct talk *t, struct end *from, struct end *to)
{
    static uint8_t data[DATA_MAX];
    uint32_t n = rig_length(&t->r, DATA_MAX);
    uint32_t max = nj_prng_below(&t->r, 2) ? 16384 : 1 + nj_prng_below(&t->r, 2000);
    uint32_t n_room = nj_min_u32(PIPE - to->n_pipe, nj_prng_below(&t->r, 200000));
    struct rig_pieces src, dst;

    n = nj_min_u32(n, nj_tls_session_content_that_fits(&from->s, n_room, max));
    uint32_t n_out = nj_tls_session_sealed_bytes(&from->s, n, max);
    cr_assert_leq(n_out, n_room);
    for (uint32_t i = 0; i < n; i++)
        data[i] = byte_at(from->n_sent + i);
    rig_scatter(&t->r, &src, data, n);
    rig_scatter(&t->r, &dst, NULL, n_out);
    int got =
        nj_tls_session_seal(&from->s, &t->c, any_cache(t), max, src.src, src.n, dst.dst, dst.n);
    if (!faults)
        cr_assert_eq(got, (int)n_out);
    from->n_sent += got >= 0 ? n : 0;
    rig_gather(&src, NULL);
    append(t, to, &dst, got);
}

static void update_keys(struct talk *t, struct end *from, struct end *to)
{
    struct rig_pieces dst;

    if (PIPE - to->n_pipe < NJ_TLS_KEY_UPDATE_RECORD_BYTES)
        return;
    rig_scatter(&t->r, &dst, NULL, NJ_TLS_KEY_UPDATE_RECORD_BYTES);
    int n = nj_tls_session_write_key_update(&from->s, &t->c, any_cache(t), dst.dst, dst.n);
    cr_assert(n == NJ_TLS_KEY_UPDATE_RECORD_BYTES || faults);
    append(t, to, &dst, n);
}

/* The complete records on their way to `e`, some of them. */
static void receive(struct talk *t, struct end *e)
{
    uint32_t at = 0;

    for (int size; nj_prng_below(&t->r, 20) > 0; at += (uint32_t)size) {
        static uint8_t scratch[NJ_TLS_OPEN_ROOM];
        struct rig_pieces src;
        size = nj_tls_record_size(e->pipe + at, e->n_pipe - at);
        cr_assert_geq(size, 0);
        if (size == 0)
            break;
        rig_scatter(&t->r, &src, e->pipe + at, (uint32_t)size);
        struct nj_tls_input in = nj_tls_session_input(&e->s, &t->c, any_cache(t), src.src, src.n,
                                                      scratch, sizeof scratch, e->now);
        rig_gather(&src, NULL);
        cr_assert(in.kind == NJ_TLS_IN_DATA || in.kind == NJ_TLS_IN_KEY_UPDATE, "alert %u",
                  in.alert);
        e->n_updates += in.kind == NJ_TLS_IN_KEY_UPDATE;
        for (uint32_t i = 0; in.kind == NJ_TLS_IN_DATA && i < in.n_bytes; i++)
            cr_assert_eq(in.data[i], byte_at(e->n_received++));
        nj_tls_session_forgive(&e->s);
        e->now += NJ_TLS_KEY_UPDATE_TIME;
    }
    memmove(e->pipe, e->pipe + at, e->n_pipe - at);
    e->n_pipe -= at;
}

/* Number the next record as if many had been sent before it. */
static void jump(struct end *from, struct end *to)
{
    if (to->n_pipe == 0 && from->s.write.record_number < NJ_TLS_GCM_UPDATE_AT - 5) {
        from->s.write.record_number = NJ_TLS_GCM_UPDATE_AT - 5;
        to->s.read.record_number = NJ_TLS_GCM_UPDATE_AT - 5;
    }
}

static void step(struct talk *t)
{
    uint32_t i = nj_prng_below(&t->r, 2);
    struct end *from = &t->ends[i], *to = &t->ends[1 - i];

    switch (nj_prng_below(&t->r, 20)) {
    case 0:
        update_keys(t, from, to);
        break;
    case 1:
        jump(from, to);
        break;
    case 2:
        nj_tls_expanded_wipe(t->c.aead, any_cache(t));
        break;
    case 3:
    case 4:
    case 5:
    case 6:
    case 7:
    case 8:
        receive(t, from);
        break;
    default:
        send_data(t, from, to);
    }
}

static struct talk *talk_new(uint64_t seed, enum nj_tls_cipher cipher)
{
    struct talk *t = calloc(1, sizeof *t);
    uint8_t secrets[2][NJ_TLS_SECRET_BYTES_MAX];
    struct nj_tls_keys k[2];

    cr_assert(t);
    nj_prng_init(&t->r, seed);
    t->c.aead = nj_tls_aead_new(NJ_TLS_ENGINE_AUTO);
    t->c.kdf = nj_tls_kdf_new();
    cr_assert(t->c.aead && t->c.kdf);
    check_nonces(t->c.aead);
    for (uint32_t i = 0; i < 2; i++) {
        t->expanded[i] = rig_expanded(t->c.aead);
        rig_fill(&t->r, secrets[i], sizeof secrets[i]);
        cr_assert(nj_tls_keys_derive(&k[i], t->c.kdf, cipher, secrets[i]));
    }
    nj_tls_session_init(&t->ends[0].s, &k[0], &k[1], (uint16_t)(64 + nj_prng_below(&t->r, 16322)));
    nj_tls_session_init(&t->ends[1].s, &k[1], &k[0], NJ_TLS_RECORD_SIZE_LIMIT_MAX);
    return t;
}

static void talk_free(struct talk *t)
{
    for (uint32_t i = 0; i < 2; i++)
        free(t->expanded[i]);
    nj_tls_kdf_free(t->c.kdf);
    nj_tls_aead_free(t->c.aead);
    free(t);
}

static uint64_t first_seed(uint64_t seed)
{
    return rig_prng(seed).state;
}

Test(tls_session_random, all_data_arrives)
{
    uint64_t seed = first_seed(0x5e5);

    for (uint32_t i = 0; i < 6; i++) {
        struct talk *t = talk_new(seed + i, rig_ciphers[i % NJ_TLS_CIPHERS]);
        for (uint32_t j = 0; j < STEPS; j++)
            step(t);
        for (uint32_t j = 0; j < 2; j++) {
            while (t->ends[j].n_pipe > 0)
                receive(t, &t->ends[j]);
        }
        for (uint32_t j = 0; j < 2; j++) {
            cr_assert_eq(t->ends[j].n_received, t->ends[1 - j].n_sent);
            cr_assert(t->ends[j].n_received > 1000000 && t->ends[j].n_updates > 20,
                      "%lu bytes, %u updates", (unsigned long)t->ends[j].n_received,
                      t->ends[j].n_updates);
        }
        talk_free(t);
    }
}

/* A session ends with a failure, and seals nothing more. */
static bool fails_once(uint64_t seed, enum nj_tls_cipher cipher)
{
    struct talk *t = talk_new(seed, cipher);
    bool has_failed = false;

    for (uint32_t i = 0; i < 300; i++) {
        bool was_closed = nj_tls_session_is_write_closed(&t->ends[0].s);
        uint32_t n_before;
        const struct nj_tls_src src = {(const uint8_t *)"x", 1};
        uint8_t out[100];
        const struct nj_tls_dst dst = {out, sizeof out};
        step(t);
        n_before = n_seen;
        int n = nj_tls_session_seal(&t->ends[0].s, &t->c, any_cache(t), 1, &src, 1, &dst, 1);
        cr_assert(!was_closed || (n == NJ_TLS_CLOSED && n_seen == n_before));
        has_failed |= n == NJ_TLS_ENGINE_FAILED;
        t->ends[1].n_pipe = 0; /* nobody listens any more */
        t->ends[0].n_pipe = 0;
    }
    talk_free(t);
    return has_failed;
}

Test(tls_session_random, failures_use_no_nonce_twice)
{
    uint64_t seed = first_seed(0xfa1);
    uint32_t n_failed = 0;
    struct nj_prng r;

    nj_prng_init(&r, seed);
    faults = &r;
    for (uint32_t i = 0; i < 15; i++)
        n_failed += fails_once(seed + i, rig_ciphers[i % NJ_TLS_CIPHERS]);
    cr_assert_gt(n_failed, 0);
    /* Keys alone go on after a failure, with other numbers. */
    struct talk *t = talk_new(seed, NJ_TLS_AES_128_GCM_SHA256);
    struct nj_tls_keys k = t->ends[0].s.write;
    n_failed = 0;
    for (uint32_t i = 0; i < 3000; i++) {
        uint8_t out[NJ_TLS_RECORD_OVERHEAD];
        const struct nj_tls_dst dst = {out, sizeof out};
        n_failed += nj_tls_record_seal(t->c.aead, &k, any_cache(t), NJ_TLS_APPLICATION_DATA, NULL,
                                       0, &dst, 1) < 0;
    }
    cr_assert(n_failed > 0 && k.record_number == 3000 && n_seen == 3000);
    talk_free(t);
    faults = NULL;
}
