/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fuzz target: records of a peer for a TLS session with known keys, and what the session sends. The
 * first byte selects cipher and back end, the second the peer's record_size_limit. Commands follow,
 * a byte each and what it needs: bytes as they are, records that are sealed properly around any
 * content, records with a changed bit, and calls for output, which the peer opens.
 */
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/types.h"
#include "tls/session.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes);

enum { RAW, SEALED, CHANGED, KEY_UPDATE, FORGIVE, SEND, SEND_KEY_UPDATE, SEND_ALERT, COMMANDS };

#define CHANGES_MAX 64u /* KeyUpdates, which are slow */
#define OUT_BYTES   (1u << 16)

struct fuzz {
    const uint8_t *data;
    size_t n_bytes;
    struct nj_tls_crypto c;
    struct nj_tls_expanded *expanded;
    struct nj_tls_session s;
    struct nj_tls_keys to_server, from_server;
    uint8_t message[5]; /* the handshake bytes since the last KeyUpdate */
    uint32_t n_message, n_changes;
    nj_ns now;
};

static struct nj_tls_aead *aeads[2]; /* by EVP, and the best */
static struct nj_tls_kdf *kdf;
static struct nj_tls_expanded *expansions[2];

static uint32_t take(struct fuzz *f)
{
    if (f->n_bytes == 0)
        return 0;
    f->n_bytes--;
    return *f->data++;
}

static const uint8_t *take_bytes(struct fuzz *f, uint32_t *n)
{
    const uint8_t *p = f->data;

    *n = f->n_bytes < *n ? (uint32_t)f->n_bytes : *n;
    f->data += *n;
    f->n_bytes -= *n;
    return p;
}

static void check(const struct nj_tls_input *in)
{
    NJ_CHECK(in->kind == NJ_TLS_IN_DATA || in->n_bytes == 0);
    NJ_CHECK(in->kind != NJ_TLS_IN_ERROR || in->alert == NJ_TLS_UNEXPECTED_MESSAGE ||
             in->alert == NJ_TLS_BAD_RECORD_MAC || in->alert == NJ_TLS_RECORD_OVERFLOW ||
             in->alert == NJ_TLS_DECODE_ERROR || in->alert == NJ_TLS_ILLEGAL_PARAMETER);
    NJ_CHECK(in->kind != NJ_TLS_IN_DATA || in->n_bytes > 0);
}

/* One record in two pieces, in memory as large as they are. `scratch` is freed by the caller. */
static struct nj_tls_input deliver(struct fuzz *f, const uint8_t *record, uint32_t n,
                                   uint32_t n_first, uint8_t **scratch)
{
    n_first = nj_min_u32(n_first, n);
    uint8_t *a = malloc(n_first ? n_first : 1), *b = malloc(n - n_first ? n - n_first : 1);
    const struct nj_tls_src src[] = {{a, n_first}, {b, n - n_first}};
    uint32_t n_scratch = n > 21 ? n - 21 : 1;
    bool was_closed = nj_tls_session_is_read_closed(&f->s);

    memcpy(a, record, n_first);
    memcpy(b, record + n_first, n - n_first);
    *scratch = malloc(n_scratch);
    struct nj_tls_input in =
        nj_tls_session_input(&f->s, &f->c, f->expanded, src, 2, *scratch, n_scratch, f->now);
    check(&in);
    NJ_CHECK(!was_closed || in.kind == NJ_TLS_IN_NOTHING);
    free(a);
    free(b);
    return in;
}

static void input_raw(struct fuzz *f)
{
    uint32_t n = take(f) << 8 | take(f);
    const uint8_t *p = take_bytes(f, &n);
    int size = nj_tls_record_size(p, n);
    uint8_t *scratch;

    NJ_CHECK(size >= 0 || size == -NJ_TLS_UNEXPECTED_MESSAGE || size == -NJ_TLS_RECORD_OVERFLOW);
    NJ_CHECK(size <= (int)NJ_TLS_RECORD_BYTES_MAX);
    if (size <= 0 || (uint32_t)size > n)
        return;
    struct nj_tls_input in = deliver(f, p, (uint32_t)size, n & 7, &scratch);
    NJ_CHECK(in.kind == NJ_TLS_IN_ERROR || in.kind == NJ_TLS_IN_NOTHING);
    NJ_CHECK(nj_tls_session_is_read_closed(&f->s)); /* nobody guesses a tag */
    free(scratch);
}

/* A record around content, type and zeros: sealed as content, type being the last byte that is not
 * 0, as far as the 2^14 bytes of nj_tls_record_seal() reach. Returns its size. */
static uint32_t seal(struct fuzz *f, const uint8_t *content, uint32_t n, uint32_t type,
                     uint32_t n_zeros, uint8_t *record)
{
    static const uint8_t zeros[NJ_TLS_CONTENT_MAX];
    const uint8_t byte = (uint8_t)type;
    const struct nj_tls_src src[] = {
        {content, n}, {&byte, n_zeros ? 1 : 0}, {zeros, n_zeros ? n_zeros - 1 : 0}};
    const struct nj_tls_dst dst = {record, NJ_TLS_RECORD_BYTES_MAX};
    enum nj_tls_content_type last = (enum nj_tls_content_type)(n_zeros ? 0 : type);
    int size = nj_tls_record_seal(f->c.aead, &f->to_server, f->expanded, last, src, 3, &dst, 1);

    NJ_CHECK(size > 0);
    return (uint32_t)size;
}

static void next_keys(struct fuzz *f, struct nj_tls_keys *k)
{
    struct nj_tls_keys next;

    NJ_CHECK(nj_tls_keys_derive_next(&next, f->c.kdf, k));
    *k = next;
}

/* What the session makes of the record, as far as it is simple to say. */
static void expect(struct fuzz *f, const struct nj_tls_input *in, bool was_closed,
                   const uint8_t *content, uint32_t n, uint32_t type)
{
    bool is_plain = type == NJ_TLS_APPLICATION_DATA && n > 0 && f->n_message == 0;

    if (in->kind == NJ_TLS_IN_DATA)
        NJ_CHECK(is_plain && in->n_bytes == n && memcmp(in->data, content, n) == 0);
    NJ_CHECK(!is_plain || was_closed || in->kind == NJ_TLS_IN_DATA);
    if (in->kind == NJ_TLS_IN_CLOSE_NOTIFY || in->kind == NJ_TLS_IN_PEER_ALERT)
        NJ_CHECK(type == NJ_TLS_ALERT && n == 2 && in->alert == content[1]);
    if (type != NJ_TLS_HANDSHAKE || was_closed)
        return;
    for (uint32_t i = 0; i < n && f->n_message < 5; i++)
        f->message[f->n_message++] = content[i];
    if (in->kind == NJ_TLS_IN_KEY_UPDATE) {
        NJ_CHECK(f->n_message == 5 && memcmp(f->message, "\x18\0\0\1", 4) == 0);
        NJ_CHECK(f->message[4] < 2);
        NJ_CHECK(f->message[4] == 0 || nj_tls_session_is_write_closed(&f->s) ||
                 nj_tls_session_is_key_update_due(&f->s));
        f->n_message = 0;
        next_keys(f, &f->to_server);
    }
}

static void input_sealed(struct fuzz *f, const uint8_t *content, uint32_t n, uint32_t type,
                         uint32_t n_zeros, uint32_t changed_bit)
{
    static uint8_t record[NJ_TLS_RECORD_BYTES_MAX];
    bool was_closed = nj_tls_session_is_read_closed(&f->s);
    uint8_t *scratch;

    if (type == 0) /* that is padding */
        return;
    uint32_t size = seal(f, content, n, type, n_zeros, record);
    if (changed_bit != UINT32_MAX) {
        changed_bit %= 8 * size;
        if (changed_bit / 8 == 3 || changed_bit / 8 == 4)
            changed_bit += 16; /* another length would make another record */
        record[changed_bit / 8] ^= (uint8_t)(1u << changed_bit % 8);
        struct nj_tls_input in = deliver(f, record, size, n & 15, &scratch);
        NJ_CHECK(was_closed || in.kind == NJ_TLS_IN_ERROR);
        free(scratch);
        return;
    }
    struct nj_tls_input in = deliver(f, record, size, n & 15, &scratch);
    expect(f, &in, was_closed, content, n, type);
    free(scratch);
}

/* The peer opens what was sent. `data` is all of it that is not KeyUpdate or alert. */
static void receive(struct fuzz *f, const uint8_t *out, uint32_t n_out, const uint8_t *data,
                    uint32_t n_data, uint32_t record_max)
{
    static uint8_t plain[NJ_TLS_OPEN_ROOM];

    for (uint32_t at = 0; at < n_out;) {
        int size = nj_tls_record_size(out + at, n_out - at);
        NJ_CHECK(size > 0 && (uint32_t)size <= n_out - at);
        const struct nj_tls_src src = {out + at, (uint32_t)size};
        struct nj_tls_opened o;
        NJ_CHECK(nj_tls_record_open(f->c.aead, &f->from_server, f->expanded, &src, 1, plain,
                                    sizeof plain, &o) == 0);
        at += (uint32_t)size;
        if (o.type == NJ_TLS_HANDSHAKE) {
            next_keys(f, &f->from_server);
        } else if (o.type == NJ_TLS_APPLICATION_DATA) {
            NJ_CHECK(o.n_bytes > 0 && o.n_bytes <= record_max && o.n_bytes <= n_data);
            NJ_CHECK(o.n_bytes < f->s.record_size_limit && memcmp(plain, data, o.n_bytes) == 0);
            data += o.n_bytes;
            n_data -= o.n_bytes;
        }
    }
    NJ_CHECK(n_data == 0);
}

static void send(struct fuzz *f, uint32_t command)
{
    static uint8_t out[OUT_BYTES];
    uint32_t n = command == SEND ? take(f) * 4 : 0, max = 1 + take(f) * 8, n_first = take(f);
    const uint8_t *data = take_bytes(f, &n);
    uint32_t n_room = command == SEND              ? nj_tls_session_sealed_bytes(&f->s, n, max)
                      : command == SEND_KEY_UPDATE ? NJ_TLS_KEY_UPDATE_RECORD_BYTES
                                                   : NJ_TLS_ALERT_RECORD_BYTES;
    NJ_CHECK(n_room <= OUT_BYTES);
    n_first = nj_min_u32(n_first, n_room);
    const struct nj_tls_src src = {data, n};
    const struct nj_tls_dst dst[] = {{out, n_first}, {out + n_first, n_room - n_first}};
    bool was_closed = nj_tls_session_is_write_closed(&f->s);
    int got;

    if (command == SEND)
        got = nj_tls_session_seal(&f->s, &f->c, f->expanded, max, &src, 1, dst, 2);
    else if (command == SEND_KEY_UPDATE)
        got = nj_tls_session_write_key_update(&f->s, &f->c, f->expanded, dst, 2);
    else
        got = nj_tls_session_write_alert(&f->s, &f->c, f->expanded, (enum nj_tls_alert)(max / 8),
                                         dst, 2);
    NJ_CHECK(got == (was_closed ? NJ_TLS_CLOSED : (int)n_room));
    if (!was_closed)
        receive(f, out, n_room, data, n, max);
}

static void run(struct fuzz *f)
{
    while (f->n_bytes > 0) {
        uint32_t command = take(f) % COMMANDS, n, type, n_zeros, bit = UINT32_MAX;
        const uint8_t update[5] = {24, 0, 0, 1, (uint8_t)(f->n_bytes & 1)};
        switch (command) {
        case RAW:
            input_raw(f);
            break;
        case CHANGED:
            bit = take(f) << 8 | take(f);
            /* fall through */
        case SEALED:
            type = take(f);
            n_zeros = take(f) * 60;
            n = take(f);
            const uint8_t *content = take_bytes(f, &n);
            input_sealed(f, content, n, type, n_zeros, bit);
            break;
        case KEY_UPDATE:
            if (f->n_changes++ < CHANGES_MAX)
                input_sealed(f, update, sizeof update, NJ_TLS_HANDSHAKE, 0, UINT32_MAX);
            break;
        case FORGIVE:
            nj_tls_session_forgive(&f->s);
            f->now += NJ_TLS_KEY_UPDATE_TIME;
            break;
        case SEND_KEY_UPDATE:
            if (f->n_changes++ >= CHANGES_MAX)
                break;
            /* fall through */
        default:
            send(f, command);
        }
    }
}

static void stop(void)
{
    nj_tls_kdf_free(kdf);
    for (int i = 0; i < 2; i++) {
        nj_tls_aead_free(aeads[i]);
        free(expansions[i]);
    }
}

/* Once, since OpenSSL takes milliseconds. Freed at the end: LeakSanitizer does not look for
 * pointers in their memory. */
static void start(void)
{
    NJ_CHECK(atexit(stop) == 0);
    kdf = nj_tls_kdf_new();
    NJ_CHECK(kdf);
    for (int i = 0; i < 2; i++) {
        aeads[i] = nj_tls_aead_new(i ? NJ_TLS_ENGINE_AUTO : NJ_TLS_ENGINE_EVP);
        NJ_CHECK(aeads[i]);
        expansions[i] = aligned_alloc(NJ_TLS_EXPANDED_ALIGN, nj_tls_expanded_bytes(aeads[i]));
        NJ_CHECK(expansions[i]);
        memset(expansions[i], 0, nj_tls_expanded_bytes(aeads[i]));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
    static const uint8_t secrets[2][NJ_TLS_SECRET_BYTES_MAX] = {{1}, {2}};

    if (n_bytes < 2)
        return 0;
    if (!kdf)
        start();
    enum nj_tls_cipher cipher = (enum nj_tls_cipher)(NJ_TLS_AES_128_GCM_SHA256 + data[0] / 2 % 3);
    struct fuzz f = {.data = data + 2,
                     .n_bytes = n_bytes - 2,
                     .c = {aeads[data[0] & 1], kdf},
                     .expanded = expansions[data[0] & 1]};
    NJ_CHECK(nj_tls_keys_derive(&f.to_server, kdf, cipher, secrets[0]));
    NJ_CHECK(nj_tls_keys_derive(&f.from_server, kdf, cipher, secrets[1]));
    nj_tls_session_init(&f.s, &f.to_server, &f.from_server,
                        data[1] ? (uint16_t)(NJ_TLS_RECORD_SIZE_LIMIT_MIN + data[1] - 1)
                                : NJ_TLS_RECORD_SIZE_LIMIT_MAX);
    run(&f);
    nj_tls_session_wipe(&f.s);
    return 0;
}
