/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Records after the handshake: application data, KeyUpdate (RFC 8446 4.6.3) and alerts (6).
 *
 * A server gets no other handshake message then: it offers no post_handshake_auth.
 */
#include "tls/session.h"

#include <string.h>

#include "base/assert.h"
#include "base/compiler.h"
#include "base/types.h"
#include "tls/record_internal.h"

#define HANDSHAKE_KEY_UPDATE 24u /* RFC 8446 4 */

enum { UPDATE_NOT_REQUESTED = 0, UPDATE_REQUESTED = 1 }; /* RFC 8446 4.6.3 */

enum {
    READ_CLOSED = 1,
    WRITE_CLOSED = 2,
    OWES_KEY_UPDATE = 4, /* the peer asked for one */
    HAS_ASKED = 8,       /* we asked for one, and the read keys are still the same */
};

void nj_tls_session_init(struct nj_tls_session *s, const struct nj_tls_keys *read,
                         const struct nj_tls_keys *write, uint16_t record_size_limit)
{
    NJ_ASSERT(record_size_limit >= NJ_TLS_RECORD_SIZE_LIMIT_MIN);
    *s = (struct nj_tls_session){
        .read = *read,
        .write = *write,
        .record_size_limit = (uint16_t)nj_min_u32(record_size_limit, NJ_TLS_RECORD_SIZE_LIMIT_MAX)};
}

void nj_tls_session_wipe(struct nj_tls_session *s)
{
    explicit_bzero(s, sizeof *s);
    s->flags = READ_CLOSED | WRITE_CLOSED;
}

bool nj_tls_session_is_write_closed(const struct nj_tls_session *s)
{
    return s->flags & WRITE_CLOSED;
}

bool nj_tls_session_is_read_closed(const struct nj_tls_session *s)
{
    return s->flags & READ_CLOSED;
}

/* --- input ----------------------------------------------------------------------------------- */

static struct nj_tls_input nothing(void)
{
    return (struct nj_tls_input){.kind = NJ_TLS_IN_NOTHING};
}

static struct nj_tls_input error(struct nj_tls_session *s, int alert)
{
    s->flags |= READ_CLOSED;
    return (struct nj_tls_input){.kind = NJ_TLS_IN_ERROR, .alert = (uint8_t)alert};
}

static struct nj_tls_input flood(struct nj_tls_session *s)
{
    struct nj_tls_input in = error(s, NJ_TLS_UNEXPECTED_MESSAGE);

    in.is_flood = true;
    return in;
}

/* A record without data. */
static struct nj_tls_input input_idle_record(struct nj_tls_session *s)
{
    return s->n_idle_records++ >= NJ_TLS_IDLE_RECORDS_MAX ? flood(s) : nothing();
}

/* Generic cell rate algorithm. */
static bool is_key_update_allowed(struct nj_tls_session *s, nj_ns now)
{
    nj_ns from = s->key_updates_until > now ? s->key_updates_until : now;

    if (from - now > (NJ_TLS_KEY_UPDATES_MAX - 1) * NJ_TLS_KEY_UPDATE_TIME)
        return false;
    s->key_updates_until = from + NJ_TLS_KEY_UPDATE_TIME;
    return true;
}

static struct nj_tls_input input_key_update(struct nj_tls_session *s, const struct nj_tls_crypto *c,
                                            nj_ns now)
{
    struct nj_tls_keys next;

    s->n_message = 0;
    if (s->message[4] > UPDATE_REQUESTED)
        return error(s, NJ_TLS_ILLEGAL_PARAMETER);
    if (!is_key_update_allowed(s, now))
        return flood(s);
    if (!nj_tls_keys_derive_next(&next, c->kdf, &s->read))
        return error(s, NJ_TLS_INTERNAL_ERROR);
    s->read = next;
    nj_tls_keys_wipe(&next);
    s->flags &= (uint8_t)~HAS_ASKED;
    /* Several requests are answered once (RFC 8446 4.6.3). */
    if (s->message[4] == UPDATE_REQUESTED)
        s->flags |= OWES_KEY_UPDATE;
    return (struct nj_tls_input){.kind = NJ_TLS_IN_KEY_UPDATE};
}

/* Its only message is a KeyUpdate, which ends at the end of a record, since the keys change (RFC
 * 8446 5.1). Each byte is checked when it is there, so nothing else is collected. */
static struct nj_tls_input input_handshake(struct nj_tls_session *s, const struct nj_tls_crypto *c,
                                           const uint8_t *p, uint32_t n, nj_ns now)
{
    static const uint8_t head[4] = {HANDSHAKE_KEY_UPDATE, 0, 0, 1};

    if (n == 0)
        return error(s, NJ_TLS_UNEXPECTED_MESSAGE);
    for (uint32_t i = 0; i < n; i++) {
        if (s->n_message == NJ_TLS_KEY_UPDATE_BYTES)
            return error(s, NJ_TLS_UNEXPECTED_MESSAGE);
        if (s->n_message < sizeof head && p[i] != head[s->n_message])
            return error(s, s->n_message == 0 ? NJ_TLS_UNEXPECTED_MESSAGE : NJ_TLS_DECODE_ERROR);
        s->message[s->n_message++] = p[i];
    }
    return s->n_message == NJ_TLS_KEY_UPDATE_BYTES ? input_key_update(s, c, now) : nothing();
}

/* The level is ignored (RFC 8446 6). */
static struct nj_tls_input input_alert(struct nj_tls_session *s, const uint8_t *p, uint32_t n)
{
    if (n != 2)
        return error(s, n == 0 ? NJ_TLS_UNEXPECTED_MESSAGE : NJ_TLS_DECODE_ERROR);
    /* A close_notify should follow (6.1). Java's clients send both when they close. */
    if (p[1] == NJ_TLS_USER_CANCELED)
        return input_idle_record(s);
    s->flags |= READ_CLOSED;
    if (p[1] == NJ_TLS_CLOSE_NOTIFY)
        return (struct nj_tls_input){.kind = NJ_TLS_IN_CLOSE_NOTIFY};
    s->flags |= WRITE_CLOSED;
    return (struct nj_tls_input){.kind = NJ_TLS_IN_PEER_ALERT, .alert = p[1]};
}

struct nj_tls_input nj_tls_session_input(struct nj_tls_session *s, const struct nj_tls_crypto *c,
                                         struct nj_tls_expanded *expanded,
                                         const struct nj_tls_src *src, uint32_t n_src,
                                         uint8_t *scratch, uint32_t n_scratch, nj_ns now)
{
    struct nj_tls_opened in;

    if (nj_unlikely(s->flags & READ_CLOSED))
        return nothing();
    int alert =
        nj_tls_record_open(c->aead, &s->read, expanded, src, n_src, scratch, n_scratch, &in);
    if (nj_unlikely(alert != 0))
        return error(s, alert);
    if (in.type == NJ_TLS_HANDSHAKE)
        return input_handshake(s, c, scratch, in.n_bytes, now);
    if (nj_unlikely(s->n_message > 0)) /* within a message (RFC 8446 5.1) */
        return error(s, NJ_TLS_UNEXPECTED_MESSAGE);
    if (in.type == NJ_TLS_ALERT)
        return input_alert(s, scratch, in.n_bytes);
    if (in.n_bytes == 0)
        return input_idle_record(s);
    return (struct nj_tls_input){.kind = NJ_TLS_IN_DATA, .data = scratch, .n_bytes = in.n_bytes};
}

/* --- output ---------------------------------------------------------------------------------- */

/* The peer has sent many records with its key: it should change it. */
static bool should_ask(const struct nj_tls_session *s)
{
    return nj_tls_needs_key_update(&s->read) && !(s->flags & (HAS_ASKED | READ_CLOSED));
}

bool nj_tls_session_is_key_update_due(const struct nj_tls_session *s)
{
    return !(s->flags & WRITE_CLOSED) &&
           (s->flags & OWES_KEY_UPDATE || nj_tls_needs_key_update(&s->write) || should_ask(s));
}

/* The limit of RFC 8449 4 counts the content type. */
static uint32_t content_max(const struct nj_tls_session *s, uint32_t record_max)
{
    NJ_ASSERT(record_max > 0);
    return nj_max_u32(nj_min_u32(record_max, s->record_size_limit - 1u), 1);
}

uint64_t nj_tls_session_sealed_bytes(const struct nj_tls_session *s, uint64_t n_bytes,
                                     uint32_t record_max)
{
    const uint32_t n_max = content_max(s, record_max);
    uint64_t n_records = (n_bytes + n_max - 1) / n_max;

    return n_bytes + n_records * NJ_TLS_RECORD_OVERHEAD +
           (n_bytes > 0 && nj_tls_session_is_key_update_due(s) ? NJ_TLS_KEY_UPDATE_RECORD_BYTES
                                                               : 0);
}

uint32_t nj_tls_session_content_that_fits(const struct nj_tls_session *s, uint32_t n_room,
                                          uint32_t record_max)
{
    const uint32_t n_max = content_max(s, record_max), n_record = n_max + NJ_TLS_RECORD_OVERHEAD;
    uint32_t n_before = nj_tls_session_is_key_update_due(s) ? NJ_TLS_KEY_UPDATE_RECORD_BYTES : 0;

    if (n_room < n_before)
        return 0;
    n_room -= n_before;
    uint32_t n_last = n_room % n_record;
    uint32_t n_bytes = n_room / n_record * n_max +
                       (n_last > NJ_TLS_RECORD_OVERHEAD ? n_last - NJ_TLS_RECORD_OVERHEAD : 0);
    return nj_min_u32(n_bytes, NJ_TLS_SEAL_BYTES_MAX);
}

/* A failure after bytes were written, or a key that cannot be replaced: nothing may follow. */
static int fail(struct nj_tls_session *s, int refusal)
{
    s->flags |= WRITE_CLOSED;
    return refusal;
}

static int seal_message(struct nj_tls_session *s, const struct nj_tls_crypto *c,
                        struct nj_tls_expanded *expanded, enum nj_tls_content_type type,
                        const uint8_t *p, uint32_t n, struct nj__tls_writer *out)
{
    const struct nj_tls_src piece = {p, n};
    struct nj__tls_reader in = {&piece, 1, 0};

    return nj__tls_seal_next(c->aead, &s->write, expanded, type, &in, n, out);
}

/* The next keys are made first: if that fails, the peer has not been told of them. */
static int key_update(struct nj_tls_session *s, const struct nj_tls_crypto *c,
                      struct nj_tls_expanded *expanded, struct nj__tls_writer *out)
{
    const bool asks = should_ask(s);
    const uint8_t message[NJ_TLS_KEY_UPDATE_BYTES] = {
        HANDSHAKE_KEY_UPDATE, 0, 0, 1, asks ? UPDATE_REQUESTED : UPDATE_NOT_REQUESTED};
    struct nj_tls_keys next;

    if (!nj_tls_keys_derive_next(&next, c->kdf, &s->write))
        return fail(s, NJ_TLS_ENGINE_FAILED);
    int n = seal_message(s, c, expanded, NJ_TLS_HANDSHAKE, message, sizeof message, out);
    if (n > 0) {
        s->write = next;
        s->flags &= (uint8_t)~OWES_KEY_UPDATE;
        s->flags |= asks ? HAS_ASKED : 0;
    }
    nj_tls_keys_wipe(&next);
    return n > 0 ? n : fail(s, n);
}

int nj_tls_session_write_key_update(struct nj_tls_session *s, const struct nj_tls_crypto *c,
                                    struct nj_tls_expanded *expanded, const struct nj_tls_dst *dst,
                                    uint32_t n_dst)
{
    struct nj__tls_writer out = {dst, n_dst, 0};

    if (s->flags & WRITE_CLOSED)
        return NJ_TLS_CLOSED;
    if (nj__tls_dst_bytes(dst, n_dst) < NJ_TLS_KEY_UPDATE_RECORD_BYTES)
        return NJ_TLS_NO_ROOM;
    return key_update(s, c, expanded, &out);
}

int nj_tls_session_write_alert(struct nj_tls_session *s, const struct nj_tls_crypto *c,
                               struct nj_tls_expanded *expanded, enum nj_tls_alert alert,
                               const struct nj_tls_dst *dst, uint32_t n_dst)
{
    const bool is_closure = alert == NJ_TLS_CLOSE_NOTIFY;
    const uint8_t message[2] = {is_closure ? NJ_TLS_LEVEL_WARNING : NJ_TLS_LEVEL_FATAL,
                                (uint8_t)alert};
    struct nj__tls_writer out = {dst, n_dst, 0};

    if (s->flags & WRITE_CLOSED)
        return NJ_TLS_CLOSED;
    if (nj__tls_dst_bytes(dst, n_dst) < NJ_TLS_ALERT_RECORD_BYTES)
        return NJ_TLS_NO_ROOM;
    s->flags |= WRITE_CLOSED | (is_closure ? 0 : READ_CLOSED);
    return seal_message(s, c, expanded, NJ_TLS_ALERT, message, sizeof message, &out);
}

int nj_tls_session_seal(struct nj_tls_session *s, const struct nj_tls_crypto *c,
                        struct nj_tls_expanded *expanded, uint32_t record_max,
                        const struct nj_tls_src *src, uint32_t n_src, const struct nj_tls_dst *dst,
                        uint32_t n_dst)
{
    const uint32_t n_max = content_max(s, record_max);
    struct nj__tls_reader in = {src, n_src, 0};
    struct nj__tls_writer out = {dst, n_dst, 0};
    uint64_t n_left = nj__tls_src_bytes(src, n_src);
    const uint64_t n_total = nj_tls_session_sealed_bytes(s, n_left, record_max);

    if (s->flags & WRITE_CLOSED)
        return NJ_TLS_CLOSED;
    if (n_left > NJ_TLS_SEAL_BYTES_MAX)
        return NJ_TLS_TOO_LONG;
    if (nj__tls_dst_bytes(dst, n_dst) < n_total)
        return NJ_TLS_NO_ROOM;
    if (n_left > 0 && nj_tls_session_is_key_update_due(s)) {
        int n = key_update(s, c, expanded, &out);
        if (n < 0)
            return n;
    }
    while (n_left > 0) {
        uint32_t n_content = (uint32_t)nj_min_u64(n_left, n_max);
        int n = nj__tls_seal_next(c->aead, &s->write, expanded, NJ_TLS_APPLICATION_DATA, &in,
                                  n_content, &out);
        if (n < 0)
            return fail(s, n);
        n_left -= n_content;
    }
    return (int)n_total;
}
