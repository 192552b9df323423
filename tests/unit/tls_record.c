/* SPDX-License-Identifier: BSD-3-Clause */
/* lib/tls: the records of RFC 8448 3, and records of all sizes and pieces. */
#include "tls_rig.h"

#include "tls/aead_internal.h"

static struct nj_tls_aead *engines[2];
static uint32_t n_engines;
static struct nj_tls_kdf *kdf;
static uint8_t content[NJ_TLS_CIPHERTEXT_MAX], out[NJ_TLS_OPEN_ROOM];
static uint8_t record[NJ_TLS_RECORD_BYTES_MAX + 64];

static void setup(void)
{
    n_engines = rig_engines(engines);
    kdf = nj_tls_kdf_new();
    cr_assert(kdf);
}

static void teardown(void)
{
    for (uint32_t i = 0; i < n_engines; i++)
        nj_tls_aead_free(engines[i]);
    nj_tls_kdf_free(kdf);
}

TestSuite(tls_record, .init = setup, .fini = teardown);

static struct nj_tls_keys keys_of(enum nj_tls_cipher cipher, const char *secret_hex)
{
    uint8_t secret[48] = {0};
    struct nj_tls_keys k;

    rig_hex(secret, sizeof secret, secret_hex);
    cr_assert(nj_tls_keys_derive(&k, kdf, cipher, secret));
    return k;
}

static int seal(struct nj_tls_aead *a, struct nj_tls_keys *k, struct nj_tls_expanded *e, int type,
                uint32_t n)
{
    const struct nj_tls_src src = {content, n};
    const struct nj_tls_dst dst = {record, sizeof record};

    return nj_tls_record_seal(a, k, e, (enum nj_tls_content_type)type, &src, 1, &dst, 1);
}

static int open_record(struct nj_tls_aead *a, struct nj_tls_keys *k, struct nj_tls_expanded *e,
                       uint32_t n, struct nj_tls_opened *opened)
{
    const struct nj_tls_src src = {record, n};

    return nj_tls_record_open(a, k, e, &src, 1, out, sizeof out, opened);
}

/* --- RFC 8448 3 ------------------------------------------------------------------------------ */

#define CLIENT_HANDSHAKE "b3eddb126e067f35a780b3abf45e2d8f3b1a950738f52e9600746a0e27a55a21"
#define CLIENT           "9e40646ce79a7f9dc05af8889bce6552875afa0b06df0087f792ebb7c17504a5"
#define SERVER           "a11af9f05531f856ad47116b45a950328204b4f44bfb6b3a4b4f1f3fcb631643"

/* The 50 bytes of data are 0, 1, 2, ...; the server's record 0 is its NewSessionTicket. */
static const struct {
    const char *secret;
    uint64_t number;
    enum nj_tls_content_type type;
    const char *content; /* NULL: the data */
    const char *record;
} rfc8448[] = {
    {CLIENT_HANDSHAKE, 0, NJ_TLS_HANDSHAKE,
     "14000020a8ec436d677634ae525ac1fcebe11a039ec17694fac6e98527b642f2edd5ce61",
     "170303003575ec4dc238cce60b298044a71e219c56cc77b0517fe9b93c7a4bfc44d87f38f80338ac98fc46de"
     "b384bd1caeacab6867d726c40546"},
    {CLIENT, 0, NJ_TLS_APPLICATION_DATA, NULL,
     "1703030043a23f7054b62c94d0affafe8228ba55cbefacea42f914aa66bcab3f2b9819a8a5b46b395bd54a9a"
     "20441e2b62974e1f5a6292a2977014bd1e3deae63aeebb21694915e4"},
    {SERVER, 1, NJ_TLS_APPLICATION_DATA, NULL,
     "17030300432e937e11ef4ac740e538ad36005fc4a46932fc3225d05f82aa1b36e30efaf97d90e6dffc602dcb"
     "501a59a8fcc49c4bf2e5f0a21c0047c2abf332540dd032e167c2955d"},
    {CLIENT, 1, NJ_TLS_ALERT, "0100", "1703030013c9872760655666b74d7ff1153efd6db6d0b0e3"},
    {SERVER, 2, NJ_TLS_ALERT, "0100", "1703030013b58fd67166ebf599d24720cfbe7efa7a8864a9"},
};

static void check_rfc8448(struct nj_tls_aead *a, struct nj_tls_expanded *e, uint32_t i)
{
    uint8_t want[128];
    uint32_t n_want = rig_hex(want, sizeof want, rfc8448[i].record), n = 50;
    struct nj_tls_keys k = keys_of(NJ_TLS_AES_128_GCM_SHA256, rfc8448[i].secret);
    struct nj_tls_opened opened;

    for (uint32_t j = 0; j < 50; j++)
        content[j] = (uint8_t)j;
    if (rfc8448[i].content)
        n = rig_hex(content, sizeof content, rfc8448[i].content);
    k.record_number = rfc8448[i].number;
    cr_expect_eq(seal(a, &k, e, rfc8448[i].type, n), (int)n_want);
    cr_expect_arr_eq(record, want, n_want);
    cr_expect_eq(k.record_number, rfc8448[i].number + 1);
    k.record_number = rfc8448[i].number;
    memcpy(record, want, n_want);
    cr_expect_eq(nj_tls_record_size(record, 5), (int)n_want);
    cr_expect_eq(open_record(a, &k, e, n_want, &opened), 0);
    cr_expect(opened.type == rfc8448[i].type && opened.n_bytes == n);
    cr_expect_arr_eq(out, content, n);
    cr_expect_eq(open_record(a, &k, e, n_want, &opened), NJ_TLS_BAD_RECORD_MAC, "the next number");
}

Test(tls_record, rfc8448)
{
    for (uint32_t i = 0; i < n_engines * NJ_ARRAY_LEN(rfc8448); i++) {
        struct nj_tls_aead *a = engines[i % n_engines];
        struct nj_tls_expanded *e = rig_expanded(a);
        check_rfc8448(a, e, i / n_engines);
        free(e);
    }
}

/* --- sizes ----------------------------------------------------------------------------------- */

static int size_of(int type, int version, uint32_t n, uint32_t n_there)
{
    const uint8_t header[5] = {(uint8_t)type, (uint8_t)(version >> 8), (uint8_t)version,
                               (uint8_t)(n >> 8), (uint8_t)n};
    uint8_t *mem = malloc(n_there ? n_there : 1);

    memcpy(mem, header, n_there);
    int size = nj_tls_record_size(mem, n_there);
    free(mem);
    return size;
}

Test(tls_record, size)
{
    for (uint32_t there = 0; there < 5; there++)
        cr_expect_eq(size_of(23, 0x0303, 100, there), 0);
    for (int type = 0; type < 256; type++) {
        bool is_known = type >= 20 && type <= 23;
        cr_expect_eq(size_of(type, 0x0303, 100, 5), is_known ? 105 : -NJ_TLS_UNEXPECTED_MESSAGE);
        cr_expect_eq(size_of(type, 0x0303, 100, 1), is_known ? 0 : -NJ_TLS_UNEXPECTED_MESSAGE);
    }
    cr_expect_eq(size_of(23, 0x0303, 0, 5), 5);
    cr_expect_eq(size_of(23, 0x0303, 16384 + 256, 5), 16384 + 256 + 5);
    cr_expect_eq(size_of(23, 0x0303, 16384 + 257, 5), -NJ_TLS_RECORD_OVERFLOW);
    cr_expect_eq(size_of(23, 0x0303, 65535, 5), -NJ_TLS_RECORD_OVERFLOW);
    cr_expect_eq(size_of(22, 0x0301, 16384, 5), 16384 + 5);
    cr_expect_eq(size_of(22, 0x0301, 16385, 5), -NJ_TLS_RECORD_OVERFLOW);
    cr_expect_eq(size_of(23, 0xffff, 17, 5), 22, "the version is ignored");
}

/* A record from pieces into pieces, which is opened from others, by another engine. */
static void check_scattered(struct nj_prng *r, enum nj_tls_cipher cipher, uint32_t n)
{
    struct nj_tls_aead *a = engines[nj_prng_below(r, n_engines)];
    struct nj_tls_aead *b = engines[nj_prng_below(r, n_engines)];
    struct nj_tls_expanded *ea = rig_expanded(a), *eb = rig_expanded(b);
    struct nj_tls_keys k = keys_of(cipher, CLIENT), read;
    struct rig_pieces from, to, sealed;
    struct nj_tls_opened opened;
    const uint32_t n_record = n + NJ_TLS_RECORD_OVERHEAD;

    rig_fill(r, k.secret, 48);
    rig_fill(r, k.key, 32);
    k.record_number = nj_prng_next(r) % NJ_TLS_GCM_RECORDS_MAX;
    read = k;
    rig_fill(r, content, n);
    rig_scatter(r, &from, content, n);
    rig_scatter(r, &to, NULL, n_record + nj_prng_below(r, 3));
    cr_assert_eq(
        nj_tls_record_seal(a, &k, ea, NJ_TLS_APPLICATION_DATA, from.src, from.n, to.dst, to.n),
        (int)n_record);
    rig_gather(&to, record);
    rig_gather(&from, NULL);
    cr_assert_eq(nj_tls_record_size(record, n_record), (int)n_record);
    rig_scatter(r, &sealed, record, n_record);
    uint8_t *mem = malloc(n + 1);
    cr_assert_eq(nj_tls_record_open(b, &read, eb, sealed.src, sealed.n, mem, n + 1, &opened), 0);
    cr_assert(opened.type == NJ_TLS_APPLICATION_DATA && opened.n_bytes == n);
    cr_assert_eq(memcmp(mem, content, n), 0, "%u bytes", n);
    cr_assert_eq(read.record_number, k.record_number);
    rig_gather(&sealed, NULL);
    free(mem);
    /* In place. */
    const struct nj_tls_src whole = {record, n_record};
    read.record_number--;
    cr_assert_eq(
        nj_tls_record_open(b, &read, eb, &whole, 1, record + NJ_TLS_HEADER_BYTES, n + 1, &opened),
        0);
    cr_assert(opened.n_bytes == n && memcmp(record + NJ_TLS_HEADER_BYTES, content, n) == 0);
    free(ea);
    free(eb);
}

Test(tls_record, all_sizes_scattered)
{
    struct nj_prng r = rig_prng(0x4ec);

    for (uint32_t n = 0; n <= 400; n++)
        check_scattered(&r, rig_ciphers[n % NJ_TLS_CIPHERS], n);
    for (uint32_t n = 16384 - 70; n <= 16384; n++)
        check_scattered(&r, rig_ciphers[n % NJ_TLS_CIPHERS], n);
    for (uint32_t i = 0; i < 600; i++)
        check_scattered(&r, rig_ciphers[i % NJ_TLS_CIPHERS], rig_length(&r, NJ_TLS_CONTENT_MAX));
}

/* --- what is refused ------------------------------------------------------------------------- */

Test(tls_record, room_and_length)
{
    struct nj_tls_aead *a = engines[0];
    struct nj_tls_expanded *e = rig_expanded(a);
    struct nj_tls_keys k = keys_of(NJ_TLS_AES_128_GCM_SHA256, CLIENT);
    struct nj_tls_opened opened;
    const struct nj_tls_src src[] = {{content, 60}, {content + 60, 40}, {NULL, 0}};
    struct nj_tls_dst dst[] = {{record, 50}, {NULL, 0}, {record + 50, 71}};

    memset(record, 0xa5, sizeof record);
    cr_expect_eq(nj_tls_record_seal(a, &k, e, NJ_TLS_APPLICATION_DATA, src, 3, dst, 3),
                 NJ_TLS_NO_ROOM);
    cr_expect_eq(seal(a, &k, e, NJ_TLS_APPLICATION_DATA, NJ_TLS_CONTENT_MAX + 1), NJ_TLS_TOO_LONG);
    cr_expect(k.record_number == 0 && record[0] == 0xa5, "nothing was done");
    dst[2].n_bytes++;
    cr_expect_eq(nj_tls_record_seal(a, &k, e, NJ_TLS_APPLICATION_DATA, src, 3, dst, 3), 122);
    cr_expect(k.record_number == 1 && record[121] != 0xa5 && record[122] == 0xa5);
    k.record_number = 0;
    const struct nj_tls_src whole = {record, 122};
    cr_expect_eq(nj_tls_record_open(a, &k, e, &whole, 1, out, 100, &opened), NJ_TLS_INTERNAL_ERROR);
    cr_expect_eq(k.record_number, 0);
    cr_expect_eq(nj_tls_record_open(a, &k, e, &whole, 1, out, 101, &opened), 0);
    const struct nj_tls_src cut = {record, 121};
    cr_expect_eq(nj_tls_record_open(a, &k, e, &cut, 1, out, 101, &opened), NJ_TLS_INTERNAL_ERROR);
    cr_expect_eq(nj_tls_record_open(a, &k, e, &cut, 0, out, 101, &opened), NJ_TLS_INTERNAL_ERROR);
    free(e);
}

/* RFC 8446 5.4: the inner plaintext is the content, a type and zeros. Types and padding of any kind
 * are made by sealing them as content, with the type 0. */
static int open_inner(struct nj_tls_aead *a, uint32_t n_content, int type, uint32_t n_zeros,
                      struct nj_tls_opened *opened)
{
    const uint32_t n_inner = n_content + 1 + n_zeros;
    struct nj_tls_expanded *e = rig_expanded(a);
    struct nj_tls_keys k = keys_of(NJ_TLS_AES_256_GCM_SHA384, CLIENT), read = k;
    const uint8_t header[5] = {23, 3, 3, (uint8_t)((n_inner + 16) >> 8), (uint8_t)(n_inner + 16)};
    struct nj_tls_aead_op op;

    memset(content, 0x5a, n_content);
    content[n_content] = (uint8_t)type;
    memset(content + n_content + 1, 0, n_zeros);
    memcpy(record, header, 5);
    cr_assert(nj_tls_expand(a, k.cipher, k.key, e));
    nj_tls_aead_begin(&op, a, e, true, k.iv, header, 5);
    nj_tls_aead_update(&op, record + 5, content, n_inner);
    cr_assert(nj_tls_aead_end_seal(&op, record + 5 + n_inner));
    memset(out, 0xee, sizeof out);
    int alert = open_record(a, &read, e, 5 + n_inner + 16, opened);
    if (alert == 0)
        cr_assert_eq(memcmp(out, content, n_content), 0);
    else
        for (uint32_t i = 0; i < n_inner; i++)
            cr_assert_eq(out[i], 0, "what is refused is not shown");
    cr_assert(n_inner == sizeof out || out[n_inner] == 0xee);
    free(e);
    return alert;
}

Test(tls_record, inner_plaintext)
{
    struct nj_tls_aead *a = engines[n_engines - 1];
    struct nj_tls_opened opened;

    for (int type = 0; type < 256; type++) {
        bool is_known = type == 21 || type == 22 || type == 23;
        /* 0 is padding: then the last byte of the content is the type */
        cr_expect_eq(open_inner(a, 40, type, 3, &opened), is_known ? 0 : NJ_TLS_UNEXPECTED_MESSAGE);
        cr_expect(!is_known || (opened.type == type && opened.n_bytes == 40));
    }
    for (uint32_t n_zeros = 0; n_zeros < 40; n_zeros++) {
        for (uint32_t n = 0; n < 20; n++) {
            cr_expect_eq(open_inner(a, n, 23, n_zeros, &opened), 0);
            cr_expect_eq(opened.n_bytes, n);
        }
    }
    cr_expect_eq(open_inner(a, 0, 0, 0, &opened), NJ_TLS_UNEXPECTED_MESSAGE, "all zeros");
    cr_expect_eq(open_inner(a, 0, 0, 16384, &opened), NJ_TLS_UNEXPECTED_MESSAGE);
    cr_expect_eq(open_inner(a, 0, 23, 16384, &opened), 0);
    cr_expect_eq(opened.n_bytes, 0);
    cr_expect_eq(open_inner(a, 16384, 23, 0, &opened), 0);
    cr_expect_eq(opened.n_bytes, 16384);
    cr_expect_eq(open_inner(a, 16384, 23, 1, &opened), NJ_TLS_RECORD_OVERFLOW);
    cr_expect_eq(open_inner(a, 16385, 23, 0, &opened), NJ_TLS_RECORD_OVERFLOW);
    cr_expect_eq(open_inner(a, 1, 23, 16384, &opened), NJ_TLS_RECORD_OVERFLOW);
    cr_expect_eq(open_inner(a, 0, 0, 16384 + 239, &opened), NJ_TLS_RECORD_OVERFLOW);
}

Test(tls_record, not_a_protected_record)
{
    struct nj_tls_aead *a = engines[0];
    struct nj_tls_expanded *e = rig_expanded(a);
    struct nj_tls_keys k = keys_of(NJ_TLS_CHACHA20_POLY1305_SHA256, CLIENT);
    struct nj_tls_opened opened;

    for (int type = 0; type < 256; type++) {
        const uint8_t header[5] = {(uint8_t)type, 3, 3, 0, 30};
        memcpy(record, header, 5);
        cr_expect_eq(open_record(a, &k, e, 35, &opened),
                     type == 23 ? NJ_TLS_BAD_RECORD_MAC : NJ_TLS_UNEXPECTED_MESSAGE);
    }
    for (uint32_t n = 0; n < 18; n++) { /* too short for a tag, or for a type */
        const uint8_t header[5] = {23, 3, 3, 0, (uint8_t)n};
        memcpy(record, header, 5);
        cr_expect_eq(open_record(a, &k, e, 5 + n, &opened), NJ_TLS_BAD_RECORD_MAC);
    }
    free(e);
}

/* Every bit of small records, and some of large ones; also bytes that are cut off or added, as far
 * as the header says so. */
static void check_changes(struct nj_prng *r, struct nj_tls_aead *a, enum nj_tls_cipher cipher,
                          uint32_t n)
{
    struct nj_tls_expanded *e = rig_expanded(a);
    struct nj_tls_keys k = keys_of(cipher, CLIENT), read = k;
    const uint32_t n_record = (uint32_t)seal(a, &k, e, NJ_TLS_APPLICATION_DATA, n);
    const uint32_t n_bits = n < 100 ? 8 * n_record : 200;
    struct nj_tls_opened opened;

    cr_assert_eq(n_record, n + NJ_TLS_RECORD_OVERHEAD);
    for (uint32_t i = 0; i < n_bits; i++) {
        uint32_t bit = n < 100 ? i : nj_prng_below(r, 8 * n_record);
        record[bit / 8] ^= (uint8_t)(1u << bit % 8);
        int size = nj_tls_record_size(record, 5);
        read.record_number = 0;
        if (size == (int)n_record) {
            int alert = open_record(a, &read, e, n_record, &opened);
            cr_assert_eq(alert, bit < 8 ? NJ_TLS_UNEXPECTED_MESSAGE : NJ_TLS_BAD_RECORD_MAC,
                         "bit %u of %u bytes", bit, n_record);
        } else if (size > 0 && size <= (int)sizeof record) {
            cr_assert_neq(open_record(a, &read, e, (uint32_t)size, &opened), 0);
        }
        record[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    read.record_number = 1;
    cr_assert_eq(open_record(a, &read, e, n_record, &opened), NJ_TLS_BAD_RECORD_MAC);
    read.record_number = 0;
    cr_assert_eq(open_record(a, &read, e, n_record, &opened), 0, "unchanged");
    free(e);
}

Test(tls_record, each_change_is_refused)
{
    static const uint32_t sizes[] = {0, 1, 15, 16, 17, 63, 1400, 16384};
    struct nj_prng r = rig_prng(0xb175);

    for (uint32_t i = 0; i < n_engines; i++)
        for (uint32_t c = 0; c < NJ_TLS_CIPHERS; c++)
            for (uint32_t s = 0; s < NJ_ARRAY_LEN(sizes); s++)
                check_changes(&r, engines[i], rig_ciphers[c], sizes[s]);
}

/* --- record numbers -------------------------------------------------------------------------- */

Test(tls_record, key_limit)
{
    struct nj_tls_aead *a = engines[0];
    struct nj_tls_expanded *e = rig_expanded(a);
    struct nj_tls_opened opened;

    const uint64_t n_max = NJ_TLS_GCM_RECORDS_MAX;
    cr_expect(n_max * n_max <= 1ull << 49 && (n_max + 1) * (n_max + 1) > 1ull << 49, "2^24.5");
    for (uint32_t i = 0; i < 2; i++) {
        struct nj_tls_keys k = keys_of(rig_ciphers[i], CLIENT);
        k.record_number = NJ_TLS_GCM_UPDATE_AT - 1;
        cr_expect_not(nj_tls_needs_key_update(&k));
        cr_expect_gt(seal(a, &k, e, NJ_TLS_APPLICATION_DATA, 1), 0);
        cr_expect(nj_tls_needs_key_update(&k));
        k.record_number = NJ_TLS_GCM_RECORDS_MAX - 1;
        cr_expect_gt(seal(a, &k, e, NJ_TLS_APPLICATION_DATA, 1), 0);
        record[0] = 0xa5;
        cr_expect_eq(seal(a, &k, e, NJ_TLS_APPLICATION_DATA, 1), NJ_TLS_KEY_USED_UP);
        cr_expect(k.record_number == NJ_TLS_GCM_RECORDS_MAX && record[0] == 0xa5);
    }
    struct nj_tls_keys k = keys_of(NJ_TLS_CHACHA20_POLY1305_SHA256, CLIENT), read;
    k.record_number = UINT64_MAX - 1;
    read = k;
    cr_expect_not(nj_tls_needs_key_update(&k));
    cr_expect_gt(seal(a, &k, e, NJ_TLS_APPLICATION_DATA, 1), 0);
    cr_expect_eq(open_record(a, &read, e, 23, &opened), 0);
    cr_expect_eq(open_record(a, &read, e, 23, &opened), NJ_TLS_INTERNAL_ERROR);
    cr_expect_eq(seal(a, &k, e, NJ_TLS_APPLICATION_DATA, 1), NJ_TLS_KEY_USED_UP);
    free(e);
}

static bool end_seal_fails(struct nj_tls_aead_op *op, uint8_t *tag)
{
    return false;
}

static bool expand_fails(struct nj_tls_aead *a, struct nj_tls_expanded *e)
{
    return false;
}

/* A record that fails has used up its number, too. */
Test(tls_record, engine_failure)
{
    struct nj_tls_aead *a = engines[0];
    struct nj_tls_expanded *e = rig_expanded(a);
    struct nj_tls_keys k = keys_of(NJ_TLS_AES_128_GCM_SHA256, CLIENT);
    struct nj__tls_aead_ops ops = *a->ops[0];
    struct nj_tls_opened opened;

    a->ops[0] = &ops;
    ops.end_seal = end_seal_fails;
    cr_expect_eq(seal(a, &k, e, NJ_TLS_APPLICATION_DATA, 10), NJ_TLS_ENGINE_FAILED);
    cr_expect_eq(k.record_number, 1);
    nj_tls_expanded_wipe(a, e);
    ops.expand = expand_fails;
    cr_expect_eq(seal(a, &k, e, NJ_TLS_APPLICATION_DATA, 10), NJ_TLS_ENGINE_FAILED);
    cr_expect_eq(open_record(a, &k, e, 32, &opened), NJ_TLS_INTERNAL_ERROR);
    cr_expect_eq(k.record_number, 1, "nothing was written");
    nj_tls_keys_wipe(&k);
    cr_expect_eq(seal(a, &k, e, NJ_TLS_APPLICATION_DATA, 10), NJ_TLS_ENGINE_FAILED, "no keys");
    free(e);
}
