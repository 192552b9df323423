/* SPDX-License-Identifier: BSD-3-Clause */
/* lib/tls: keys of traffic secrets against RFC 8448 and against EVP_KDF "TLS13-KDF". */
#include "tls_rig.h"

#include <openssl/core_names.h>
#include <openssl/kdf.h>
#include <openssl/params.h>

static struct nj_tls_kdf *kdf;

static void setup(void)
{
    kdf = nj_tls_kdf_new();
    cr_assert(kdf);
}

static void teardown(void)
{
    nj_tls_kdf_free(kdf);
}

TestSuite(tls_key_schedule, .init = setup, .fini = teardown);

/* HKDF-Expand-Label by OpenSSL's own KDF. */
static void oracle(enum nj_tls_cipher cipher, const uint8_t *secret, const char *label,
                   const uint8_t *context, uint32_t n_context, uint8_t *out, uint32_t n_out)
{
    int mode = EVP_KDF_HKDF_MODE_EXPAND_ONLY;
    char *digest = cipher == NJ_TLS_AES_256_GCM_SHA384 ? "SHA384" : "SHA256";
    EVP_KDF *method = EVP_KDF_fetch(NULL, "TLS13-KDF", NULL);
    EVP_KDF_CTX *ctx = EVP_KDF_CTX_new(method);
    OSSL_PARAM params[] = {
        OSSL_PARAM_construct_int(OSSL_KDF_PARAM_MODE, &mode),
        OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST, digest, 0),
        OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_KEY, (void *)secret,
                                          nj_tls_secret_bytes(cipher)),
        OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_PREFIX, "tls13 ", 6),
        OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_LABEL, (void *)label, strlen(label)),
        OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_DATA, (void *)context, n_context),
        OSSL_PARAM_END};

    cr_assert_eq(EVP_KDF_derive(ctx, out, n_out, params), 1);
    EVP_KDF_CTX_free(ctx);
    EVP_KDF_free(method);
}

static void expect_bytes(const uint8_t *got, const char *hex)
{
    uint8_t want[64];
    uint32_t n = rig_hex(want, sizeof want, hex);

    cr_expect_arr_eq(got, want, n, "%s", hex);
}

/* "derive write traffic keys" and "calculate finished" of RFC 8448 3. */
Test(tls_key_schedule, rfc8448)
{
    static const struct {
        const char *secret, *key, *iv;
    } keys[] = {
        /* server and client, for handshake data */
        {"b67b7d690cc16c4e75e54213cb2d37b4e9c912bcded9105d42befd59d391ad38",
         "3fce516009c21727d0f2e4e86ee403bc", "5d313eb2671276ee13000b30"},
        {"b3eddb126e067f35a780b3abf45e2d8f3b1a950738f52e9600746a0e27a55a21",
         "dbfaa693d1762c5b666af5d950258d01", "5bd3c71b836e0b76bb73265f"},
        /* server and client, for application data */
        {"a11af9f05531f856ad47116b45a950328204b4f44bfb6b3a4b4f1f3fcb631643",
         "9f02283b6c9c07efc26bb9f2ac92e356", "cf782b88dd83549aadf1e984"},
        {"9e40646ce79a7f9dc05af8889bce6552875afa0b06df0087f792ebb7c17504a5",
         "17422dda596ed5d9acd890e3c63f5051", "5b78923dee08579033e523d9"},
    };
    uint8_t secret[32], finished[32];

    for (uint32_t i = 0; i < NJ_ARRAY_LEN(keys); i++) {
        struct nj_tls_keys k;
        rig_hex(secret, sizeof secret, keys[i].secret);
        cr_assert(nj_tls_keys_derive(&k, kdf, NJ_TLS_AES_128_GCM_SHA256, secret));
        expect_bytes(k.key, keys[i].key);
        expect_bytes(k.iv, keys[i].iv);
        expect_bytes(k.secret, keys[i].secret);
        cr_expect(k.record_number == 0 && k.cipher == NJ_TLS_AES_128_GCM_SHA256);
    }
    rig_hex(secret, sizeof secret, keys[0].secret);
    cr_assert(nj_tls_hkdf_expand_label(kdf, NJ_TLS_AES_128_GCM_SHA256, secret, "finished", NULL, 0,
                                       finished, 32));
    expect_bytes(finished, "008d3b66f816ea559f96b537e885c31fc068bf492c652f01f288a1d8cdc19fc8");
}

/* All lengths of output, context and label, of which HKDF needs up to 255 blocks. */
Test(tls_key_schedule, against_evp_kdf)
{
    static uint8_t got[255 * 48], want[255 * 48];
    struct nj_prng r = rig_prng(0x13d);

    for (uint32_t i = 0; i < 1000; i++) {
        enum nj_tls_cipher cipher = rig_ciphers[i % NJ_TLS_CIPHERS];
        uint8_t secret[NJ_TLS_SECRET_BYTES_MAX], context[255];
        char label[NJ_TLS_LABEL_BYTES_MAX + 1] = "";
        uint32_t n_context = nj_prng_below(&r, 256), n_out = 1 + nj_prng_below(&r, 200);
        uint32_t n_label = 1 + nj_prng_below(&r, NJ_TLS_LABEL_BYTES_MAX);
        if (i % 100 < 3)
            n_out = 255 * nj_tls_secret_bytes(cipher);
        rig_fill(&r, secret, sizeof secret);
        rig_fill(&r, context, n_context);
        for (uint32_t j = 0; j < n_label; j++)
            label[j] = (char)('a' + nj_prng_below(&r, 26));
        oracle(cipher, secret, label, context, n_context, want, n_out);
        cr_assert(
            nj_tls_hkdf_expand_label(kdf, cipher, secret, label, context, n_context, got, n_out));
        cr_assert_arr_eq(got, want, n_out, "%x, %u bytes", cipher, n_out);
    }
}

Test(tls_key_schedule, too_long)
{
    static uint8_t out[255 * 32 + 1];
    char label[NJ_TLS_LABEL_BYTES_MAX + 2] = "";
    uint8_t secret[48] = {1};

    memset(label, 'a', NJ_TLS_LABEL_BYTES_MAX + 1);
    out[0] = out[31] = 1;
    cr_expect_not(
        nj_tls_hkdf_expand_label(kdf, NJ_TLS_AES_128_GCM_SHA256, secret, label, NULL, 0, out, 32));
    cr_expect(out[0] == 0 && out[31] == 0);
    cr_expect_not(nj_tls_hkdf_expand_label(kdf, NJ_TLS_AES_128_GCM_SHA256, secret, "key", NULL, 0,
                                           out, sizeof out));
    cr_expect_not(
        nj_tls_hkdf_expand_label(kdf, NJ_TLS_AES_128_GCM_SHA256, secret, "key", out, 256, out, 32));
}

/* RFC 8446 7.2: the next secret, from which key and IV come as ever. */
Test(tls_key_schedule, next_keys)
{
    struct nj_prng r = rig_prng(0x4e8);

    for (uint32_t i = 0; i < 30; i++) {
        enum nj_tls_cipher cipher = rig_ciphers[i % NJ_TLS_CIPHERS];
        uint8_t secret[48], next_secret[48];
        struct nj_tls_keys k, next, want;
        uint32_t n = nj_tls_secret_bytes(cipher);
        rig_fill(&r, secret, sizeof secret);
        cr_assert(nj_tls_keys_derive(&k, kdf, cipher, secret));
        k.record_number = 7;
        cr_assert(nj_tls_keys_derive_next(&next, kdf, &k));
        oracle(cipher, secret, "traffic upd", secret, 0, next_secret, n);
        cr_assert(nj_tls_keys_derive(&want, kdf, cipher, next_secret));
        cr_expect_eq(memcmp(&next, &want, sizeof next), 0);
        cr_expect_neq(memcmp(next.key, k.key, 16), 0);
        cr_expect(next.record_number == 0 && k.record_number == 7);
        nj_tls_keys_wipe(&k);
        for (uint32_t j = 0; j < sizeof k; j++)
            cr_expect_eq(((uint8_t *)&k)[j], 0);
    }
}
