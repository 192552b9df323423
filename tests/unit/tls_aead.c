/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lib/tls: the back ends of the AEADs agree with OpenSSL's EVP in one call, with each other and
 * with published vectors, whatever pieces the data comes in.
 *
 * The vectors are those of NIST's CAVP (gcmEncryptExtIV*.rsp, gcmDecrypt*.rsp), OpenSSL and
 * BoringSSL, as Debian's python3-cryptography-vectors installs them. Without that package those
 * tests say so.
 *
 * NJ_TEST_AEAD_INPUTS is the number of random inputs on which both back ends have to agree.
 */
#include "tls_rig.h"

#include <openssl/evp.h>

#include "tls/aead_internal.h"

#define VECTORS "/usr/lib/python3/dist-packages/cryptography_vectors/ciphers/"
#define BYTES   16384u
#define INPUTS  20000u

static uint8_t plain[BYTES], sealed[BYTES], opened[BYTES], expected[BYTES];

/* The back end that does this cipher; OpenSSL's EVP does ChaCha20 in any case. */
static const char *engine_name(const struct nj_tls_aead *a, enum nj_tls_cipher cipher)
{
    const uint32_t i = nj__tls_cipher_index(cipher),
                   evp = nj__tls_cipher_index(NJ_TLS_CHACHA20_POLY1305_SHA256);
    return a->ops[i] == a->ops[evp] ? "evp" : "ipsec-mb";
}

struct keyed {
    enum nj_tls_cipher cipher;
    uint8_t key[NJ_TLS_KEY_BYTES_MAX], nonce[NJ_TLS_IV_BYTES], aad[512];
    uint32_t n_aad;
};

/* The same by EVP in one call, as its manual shows it. Returns the tag in `tag`. */
static void one_shot(const struct keyed *k, const uint8_t *in, uint32_t n, uint8_t *out,
                     uint8_t *tag)
{
    static const EVP_CIPHER *(*const of[])(void) = {EVP_aes_128_gcm, EVP_aes_256_gcm,
                                                    EVP_chacha20_poly1305};
    EVP_CIPHER_CTX *ctx = EVP_CIPHER_CTX_new();
    int n_done;

    cr_assert_eq(
        EVP_EncryptInit_ex(ctx, of[nj__tls_cipher_index(k->cipher)](), NULL, k->key, k->nonce), 1);
    cr_assert_eq(EVP_EncryptUpdate(ctx, NULL, &n_done, k->aad, (int)k->n_aad), 1);
    cr_assert_eq(EVP_EncryptUpdate(ctx, out, &n_done, in, (int)n), 1);
    cr_assert_eq(EVP_EncryptFinal_ex(ctx, tag, &n_done), 1);
    cr_assert_eq(EVP_CIPHER_CTX_ctrl(ctx, EVP_CTRL_AEAD_GET_TAG, 16, tag), 1);
    EVP_CIPHER_CTX_free(ctx);
}

/* An operation in one piece, or in many if `r` is given. Returns what its end returned. */
static bool run(struct nj_tls_aead *a, struct nj_tls_expanded *e, const struct keyed *k, bool seals,
                struct nj_prng *r, const uint8_t *in, uint32_t n, uint8_t *out, uint8_t *tag)
{
    uint32_t lengths[RIG_PIECES_MAX] = {n}, n_pieces = r ? rig_cut(r, n, lengths) : 1, at = 0;
    struct nj_tls_aead_op op;

    cr_assert(nj_tls_expand(a, k->cipher, k->key, e));
    nj_tls_aead_begin(&op, a, e, seals, k->nonce, k->aad, k->n_aad);
    for (uint32_t i = 0; i < n_pieces; at += lengths[i++])
        nj_tls_aead_update(&op, out + at, in + at, lengths[i]);
    return seals ? nj_tls_aead_end_seal(&op, tag) : nj_tls_aead_end_open(&op, tag);
}

static void check_one(struct nj_tls_aead *a, struct nj_tls_expanded *e, const struct keyed *k,
                      struct nj_prng *r, uint32_t n)
{
    const char *name = engine_name(a, k->cipher);
    uint8_t tag[16], expected_tag[16];

    one_shot(k, plain, n, expected, expected_tag);
    cr_assert(run(a, e, k, true, nj_prng_below(r, 4) ? r : NULL, plain, n, sealed, tag));
    cr_assert_eq(memcmp(sealed, expected, n), 0, "%s %x: %u bytes", name, k->cipher, n);
    cr_assert_eq(memcmp(tag, expected_tag, 16), 0, "%s %x: %u bytes", name, k->cipher, n);
    cr_assert(run(a, e, k, false, nj_prng_below(r, 4) ? r : NULL, sealed, n, opened, tag));
    cr_assert_eq(memcmp(opened, plain, n), 0, "%s %x: %u bytes", name, k->cipher, n);
    /* In place, both ways. */
    cr_assert(run(a, e, k, false, r, sealed, n, sealed, tag));
    cr_assert_eq(memcmp(sealed, plain, n), 0, "%s %x: %u bytes", name, k->cipher, n);
    cr_assert(run(a, e, k, true, r, sealed, n, sealed, tag));
    cr_assert_eq(memcmp(sealed, expected, n), 0, "%s %x: %u bytes", name, k->cipher, n);
    tag[nj_prng_below(r, 16)] ^= (uint8_t)(1u << nj_prng_below(r, 8));
    cr_assert_not(run(a, e, k, false, r, sealed, n, opened, tag));
}

static struct keyed any_key(struct nj_prng *r, uint32_t i)
{
    struct keyed k = {.cipher = rig_ciphers[i % NJ_TLS_CIPHERS]};

    rig_fill(r, k.key, nj_tls_key_bytes(k.cipher));
    rig_fill(r, k.nonce, sizeof k.nonce);
    rig_fill(r, k.aad, sizeof k.aad);
    k.n_aad = nj_prng_below(r, 3) ? 5 : nj_prng_below(r, sizeof k.aad + 1);
    return k;
}

Test(tls_aead, both_agree_with_one_shot)
{
    struct nj_prng r = rig_prng(0xaead);
    struct nj_tls_aead *a[2];
    uint32_t n_engines = rig_engines(a);

    for (uint32_t i = 0; i < n_engines; i++) {
        struct nj_tls_expanded *e = rig_expanded(a[i]);
        for (uint32_t n = 0; n <= 600; n++) {
            struct keyed k = any_key(&r, n);
            rig_fill(&r, plain, n);
            check_one(a[i], e, &k, &r, n);
        }
        for (uint32_t j = 0; j < 1500; j++) {
            struct keyed k = any_key(&r, j);
            check_one(a[i], e, &k, &r, rig_length(&r, BYTES));
        }
        free(e);
        nj_tls_aead_free(a[i]);
    }
}

/* --- both back ends -------------------------------------------------------------------------- */

struct side {
    struct nj_tls_aead *a;
    struct nj_tls_expanded *e;
    uint8_t sealed[BYTES], opened[BYTES], tag[NJ_TLS_TAG_BYTES];
};

/* AES-GCM, which each of them does by itself. The key is often that of the input before. */
static void next_input(struct nj_prng *r, struct keyed *k, uint32_t i)
{
    uint8_t key[NJ_TLS_KEY_BYTES_MAX];
    enum nj_tls_cipher cipher = k->cipher;

    memcpy(key, k->key, sizeof key);
    *k = any_key(r, nj_prng_below(r, 2));
    if (i > 0 && nj_prng_below(r, 4) == 0) {
        k->cipher = cipher;
        memcpy(k->key, key, sizeof key);
    }
}

static void check_sides(struct side s[2], const struct keyed *k, struct nj_prng *r,
                        const uint8_t *in, uint32_t n, uint32_t number)
{
    for (uint32_t i = 0; i < 2; i++)
        cr_assert(run(s[i].a, s[i].e, k, true, nj_prng_below(r, 2) ? r : NULL, in, n, s[i].sealed,
                      s[i].tag));
    cr_assert(memcmp(s[0].sealed, s[1].sealed, n) == 0 && memcmp(s[0].tag, s[1].tag, 16) == 0,
              "input %u: cipher %x, %u bytes, %u of additional data", number, k->cipher, n,
              k->n_aad);
    bool is_changed = nj_prng_below(r, 4) == 0;
    if (is_changed)
        s[0].tag[nj_prng_below(r, 16)] ^= (uint8_t)(1u << nj_prng_below(r, 8));
    for (uint32_t i = 0; i < 2; i++) {
        bool ok = run(s[i].a, s[i].e, k, false, nj_prng_below(r, 2) ? r : NULL, s[0].sealed, n,
                      s[i].opened, s[0].tag);
        cr_assert_neq(ok, is_changed, "input %u", number);
        cr_assert(!ok || memcmp(s[i].opened, in, n) == 0, "input %u", number);
    }
}

Test(tls_aead, back_ends_agree, .timeout = 1000)
{
    const char *given = getenv("NJ_TEST_AEAD_INPUTS");
    uint32_t n_inputs = given ? (uint32_t)strtoul(given, NULL, 0) : INPUTS;
    struct nj_prng r = rig_prng(0xa9ee);
    static uint8_t bytes[2 * BYTES];
    static struct side s[2];
    struct nj_tls_aead *a[2];
    struct keyed k = {0};
    uint64_t n_bytes = 0;
    uint32_t n_engines = rig_engines(a);

    rig_fill(&r, bytes, sizeof bytes);
    for (uint32_t i = 0; i < n_engines; i++)
        s[i] = (struct side){.a = a[i], .e = rig_expanded(a[i])};
    for (uint32_t i = 0; n_engines == 2 && i < n_inputs; i++) {
        uint32_t n = rig_length(&r, nj_prng_below(&r, 4) ? 2000 : BYTES);
        next_input(&r, &k, i);
        check_sides(s, &k, &r, bytes + nj_prng_below(&r, BYTES), n, i);
        n_bytes += n;
    }
    if (n_engines == 2)
        printf("%u inputs, %lu bytes: %s and %s agree\n", n_inputs, (unsigned long)n_bytes,
               engine_name(a[0], k.cipher), engine_name(a[1], k.cipher));
    for (uint32_t i = 0; i < n_engines; i++) {
        free(s[i].e);
        nj_tls_aead_free(a[i]);
    }
}

/* Every byte of the key, nonce, additional data, ciphertext and tag counts. */
Test(tls_aead, each_change_is_refused)
{
    struct nj_prng r = rig_prng(0xb17);
    struct nj_tls_aead *a[2];
    uint32_t n_engines = rig_engines(a);

    for (uint32_t i = 0; i < n_engines * NJ_TLS_CIPHERS; i++) {
        struct nj_tls_aead *engine = a[i / NJ_TLS_CIPHERS];
        struct nj_tls_expanded *e = rig_expanded(engine);
        struct keyed k = any_key(&r, i);
        uint8_t tag[16];
        k.n_aad = 5;
        cr_assert(run(engine, e, &k, true, NULL, plain, 77, sealed, tag));
        uint8_t *const parts[] = {k.key, k.nonce, k.aad, sealed, tag};
        const uint32_t n_bytes[] = {nj_tls_key_bytes(k.cipher), 12, 5, 77, 16};
        for (uint32_t p = 0; p < NJ_ARRAY_LEN(parts); p++) {
            for (uint32_t bit = 0; bit < 8 * n_bytes[p]; bit++) {
                parts[p][bit / 8] ^= (uint8_t)(1u << bit % 8);
                cr_assert_not(run(engine, e, &k, false, NULL, sealed, 77, opened, tag),
                              "part %u, bit %u", p, bit);
                parts[p][bit / 8] ^= (uint8_t)(1u << bit % 8);
            }
        }
        k.n_aad = 4;
        cr_assert_not(run(engine, e, &k, false, NULL, sealed, 77, opened, tag));
        k.n_aad = 5;
        cr_assert_not(run(engine, e, &k, false, NULL, sealed, 76, opened, tag));
        cr_assert(run(engine, e, &k, false, NULL, sealed, 77, opened, tag));
        free(e);
    }
    for (uint32_t i = 0; i < n_engines; i++)
        nj_tls_aead_free(a[i]);
}

/* --- expanded keys --------------------------------------------------------------------------- */

static uint32_t n_expanded, n_forgotten;
static const struct nj__tls_aead_ops *counted_ops;

static bool counted_expand(struct nj_tls_aead *a, struct nj_tls_expanded *e)
{
    n_expanded++;
    return counted_ops->expand(a, e);
}

static void counted_forget(struct nj_tls_aead *a, const struct nj_tls_expanded *e)
{
    n_forgotten++;
    counted_ops->wipe(a, e);
}

static bool failing_expand(struct nj_tls_aead *a, struct nj_tls_expanded *e)
{
    return false;
}

static bool is_zero(const void *p, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        if (((const uint8_t *)p)[i] != 0)
            return false;
    }
    return true;
}

static void check_cache(struct nj_tls_aead *a)
{
    struct nj_tls_expanded *e = rig_expanded(a);
    uint8_t one[32] = {1}, other[32] = {1, [15] = 1};
    struct nj__tls_aead_ops ops = *a->ops[0];

    counted_ops = a->ops[0];
    ops.expand = counted_expand;
    ops.wipe = counted_forget;
    a->ops[0] = &ops;
    n_expanded = n_forgotten = 0;
    cr_assert_eq(nj_tls_expanded_bytes(a) % NJ_TLS_EXPANDED_ALIGN, 0);
    cr_assert(nj_tls_expand(a, NJ_TLS_AES_128_GCM_SHA256, one, e));
    cr_assert(nj_tls_expand(a, NJ_TLS_AES_128_GCM_SHA256, one, e));
    cr_expect(n_expanded == 1 && n_forgotten == 0);
    cr_assert(nj_tls_expand(a, NJ_TLS_AES_128_GCM_SHA256, other, e));
    cr_expect(n_expanded == 2 && n_forgotten == 1, "another key, the former one is forgotten");
    cr_assert(nj_tls_expand(a, NJ_TLS_AES_256_GCM_SHA384, other, e));
    cr_expect(n_expanded == 2 && n_forgotten == 2, "the same bytes for another cipher");
    nj_tls_expanded_wipe(a, e);
    cr_expect(is_zero(e, nj_tls_expanded_bytes(a)));
    nj_tls_expanded_wipe(a, e); /* nothing is there */
    cr_assert(nj_tls_expand(a, NJ_TLS_AES_128_GCM_SHA256, one, e));
    ops.expand = failing_expand;
    cr_assert_not(nj_tls_expand(a, NJ_TLS_AES_128_GCM_SHA256, other, e));
    cr_expect(is_zero(e, nj_tls_expanded_bytes(a)), "neither of them");
    cr_assert_not(nj_tls_expand(a, NJ_TLS_NO_CIPHER, one, e));
    free(e);
    nj_tls_aead_free(a);
}

Test(tls_aead, expanded_key_is_a_cache)
{
    struct nj_tls_aead *a[2];
    uint32_t n_engines = rig_engines(a);

    for (uint32_t i = 0; i < n_engines; i++)
        check_cache(a[i]);
}

/* Keys in turn, also those that were forgotten in between: EVP's contexts hold one at a time. */
Test(tls_aead, keys_in_turn)
{
    struct nj_prng r = rig_prng(0x70a);
    struct nj_tls_aead *a[2];
    uint32_t n_engines = rig_engines(a);

    for (uint32_t i = 0; i < n_engines; i++) {
        struct keyed keys[6];
        struct nj_tls_expanded *e[6];
        for (uint32_t j = 0; j < 6; j++) {
            keys[j] = any_key(&r, j);
            e[j] = rig_expanded(a[i]);
        }
        for (uint32_t step = 0; step < 400; step++) {
            uint32_t j = nj_prng_below(&r, 6);
            check_one(a[i], e[nj_prng_below(&r, 3) ? j : nj_prng_below(&r, 6)], &keys[j], &r,
                      nj_prng_below(&r, 100));
            if (nj_prng_below(&r, 4) == 0)
                nj_tls_expanded_wipe(a[i], e[nj_prng_below(&r, 6)]);
        }
        for (uint32_t j = 0; j < 6; j++)
            free(e[j]);
        nj_tls_aead_free(a[i]);
    }
}

Test(tls_aead, engines)
{
    struct nj_tls_aead *evp = nj_tls_aead_new(NJ_TLS_ENGINE_EVP);
    struct nj_tls_aead *best = nj_tls_aead_new(NJ_TLS_ENGINE_AUTO);

    for (uint32_t i = 0; i < NJ_TLS_CIPHERS; i++)
        cr_expect_eq(evp->ops[i], evp->ops[0]);
    cr_expect_eq(best->ops[nj__tls_cipher_index(NJ_TLS_CHACHA20_POLY1305_SHA256)], evp->ops[0]);
    cr_expect_str_eq(engine_name(best, NJ_TLS_AES_128_GCM_SHA256),
                     engine_name(best, NJ_TLS_AES_256_GCM_SHA384));
    printf("AES-GCM by %s\n", engine_name(best, NJ_TLS_AES_128_GCM_SHA256));
    cr_expect_eq(nj_tls_expanded_bytes(evp), 64);
    cr_expect_leq(nj_tls_expanded_bytes(best), 2048);
    nj_tls_aead_free(evp);
    nj_tls_aead_free(best);
    nj_tls_aead_free(NULL);
}

/* --- published vectors ----------------------------------------------------------------------- */

#define VECTOR_BYTES 1024u

struct vector {
    struct keyed k;
    uint32_t n_key, n_nonce, n_plain, n_sealed, n_tag;
    uint8_t plain[VECTOR_BYTES], sealed[VECTOR_BYTES], tag[16];
    bool is_bad, has_plain;
};

/* The value of a line `name = value`, or NULL. */
static const char *value_of(const char *line, const char *name)
{
    size_t n = strlen(name);

    if (strncasecmp(line, name, n) != 0)
        return NULL;
    n += strspn(line + n, " ");
    return line[n] == '=' ? line + n + 1 + strspn(line + n + 1, " ") : NULL;
}

/* Read a value, hexadecimal or in quotes, if the line has one of these names. */
static bool read_value(const char *line, const char *name, const char *other, uint8_t *out,
                       uint32_t n_max, uint32_t *n)
{
    const char *p = value_of(line, name);

    if (!p && !(p = value_of(line, other)))
        return false;
    if (*p == '"') {
        *n = (uint32_t)strcspn(p + 1, "\"");
        cr_assert_leq(*n, n_max);
        memcpy(out, p + 1, *n);
    } else {
        *n = rig_hex(out, n_max, p);
    }
    return true;
}

/* A line of a .rsp file, or of the files of OpenSSL and BoringSSL. Long nonces are cut: they are
 * not for this interface. */
static void read_line(struct vector *v, const char *line)
{
    uint8_t nonce[512];

    if (read_value(line, "IV", "NONCE", nonce, sizeof nonce, &v->n_nonce))
        memcpy(v->k.nonce, nonce, NJ_TLS_IV_BYTES);
    (void)read_value(line, "Key", "KEY", v->k.key, sizeof v->k.key, &v->n_key);
    (void)read_value(line, "AAD", "AD", v->k.aad, sizeof v->k.aad, &v->k.n_aad);
    (void)read_value(line, "CT", "Ciphertext", v->sealed, VECTOR_BYTES, &v->n_sealed);
    (void)read_value(line, "Tag", "TAG", v->tag, sizeof v->tag, &v->n_tag);
    if (read_value(line, "PT", "Plaintext", v->plain, VECTOR_BYTES, &v->n_plain) ||
        read_value(line, "IN", "IN", v->plain, VECTOR_BYTES, &v->n_plain))
        v->has_plain = true;
    if (strncmp(line, "FAIL", 4) == 0 || strncmp(line, "Result = CIPHERFINAL_ERROR", 26) == 0)
        v->is_bad = true;
}

/* Returns whether it is one that this interface can express. Shorter tags are the beginning of
 * those of 16 bytes (SP 800-38D 5.2.1.2); nothing opens with them. */
static bool check_vector(struct nj_tls_aead *a, struct nj_tls_expanded *e, const struct vector *v)
{
    uint8_t out[VECTOR_BYTES], tag[16];

    if (v->n_nonce != NJ_TLS_IV_BYTES || v->n_key != nj_tls_key_bytes(v->k.cipher))
        return false;
    if (v->n_tag == 16) {
        memcpy(tag, v->tag, 16);
        bool ok = run(a, e, &v->k, false, NULL, v->sealed, v->n_sealed, out, tag);
        cr_assert_neq(ok, v->is_bad);
        cr_assert(!ok || memcmp(out, v->plain, v->n_plain) == 0);
    }
    if (v->is_bad && !v->has_plain)
        return true;
    cr_assert(run(a, e, &v->k, true, NULL, v->plain, v->n_plain, out, tag));
    bool is_same = v->n_plain == v->n_sealed && memcmp(out, v->sealed, v->n_sealed) == 0 &&
                   memcmp(tag, v->tag, v->n_tag) == 0;
    cr_assert_neq(is_same, v->is_bad);
    return true;
}

/* Returns how many vectors were checked. */
static uint32_t check_file(struct nj_tls_aead *a, enum nj_tls_cipher cipher, const char *name)
{
    struct nj_tls_expanded *e = rig_expanded(a);
    static struct vector v;
    char path[256], line[4096];
    uint32_t n = 0;

    snprintf(path, sizeof path, VECTORS "%s", name);
    FILE *f = fopen(path, "r");
    if (!f) {
        printf("not run: there is no %s (python3-cryptography-vectors)\n", path);
        free(e);
        return 0;
    }
    v = (struct vector){.k.cipher = cipher};
    for (bool more = true; more;) {
        more = fgets(line, sizeof line, f);
        if (more && !value_of(line, "Count")) {
            read_line(&v, line);
            continue;
        }
        n += v.n_key > 0 && check_vector(a, e, &v);
        v = (struct vector){.k.cipher = cipher};
    }
    fclose(f);
    printf("%s: %u vectors by %s\n", name, n, engine_name(a, cipher));
    free(e);
    return n;
}

Test(tls_aead, published_vectors)
{
    static const struct {
        const char *name;
        enum nj_tls_cipher cipher;
        uint32_t n_least;
    } files[] = {
        {"AES/GCM/gcmEncryptExtIV128.rsp", NJ_TLS_AES_128_GCM_SHA256, 2625},
        {"AES/GCM/gcmEncryptExtIV256.rsp", NJ_TLS_AES_256_GCM_SHA384, 2625},
        {"AES/GCM/gcmDecrypt128.rsp", NJ_TLS_AES_128_GCM_SHA256, 2625},
        {"AES/GCM/gcmDecrypt256.rsp", NJ_TLS_AES_256_GCM_SHA384, 2625},
        {"ChaCha20Poly1305/openssl.txt", NJ_TLS_CHACHA20_POLY1305_SHA256, 5},
        {"ChaCha20Poly1305/boringssl.txt", NJ_TLS_CHACHA20_POLY1305_SHA256, 66},
    };
    struct nj_tls_aead *a[2];
    uint32_t n_engines = rig_engines(a);

    for (uint32_t i = 0; i < n_engines; i++) {
        for (uint32_t j = 0; j < NJ_ARRAY_LEN(files); j++) {
            uint32_t n = check_file(a[i], files[j].cipher, files[j].name);
            cr_expect(n == 0 || n >= files[j].n_least, "%s: %u", files[j].name, n);
        }
        nj_tls_aead_free(a[i]);
    }
}
