/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A session of the server and its peer: the client's keys, with which a test makes records of any
 * kind and opens those of the server.
 */
#pragma once

#include "tls/aead_internal.h"
#include "tls/session.h"
#include "tls_rig.h"

#define RIG_OUT_BYTES (1u << 20)

struct rig {
    struct nj_tls_crypto c;
    struct nj_tls_session s;
    struct nj_tls_keys to_server, from_server; /* the client's */
    struct nj_tls_expanded *expanded;          /* one for all: it is a cache */
    uint8_t record[NJ_TLS_RECORD_BYTES_MAX], scratch[NJ_TLS_OPEN_ROOM];
    uint8_t out[RIG_OUT_BYTES]; /* of the server */
    uint32_t n_out, n_read;     /* bytes of it; those that the client has opened */
    struct nj_tls_opened opened;
    uint8_t content[NJ_TLS_OPEN_ROOM]; /* of the record that the client has opened */
    nj_ns now;
};

static inline struct rig *rig_new_with(enum nj_tls_engine engine, enum nj_tls_cipher cipher,
                                       uint16_t record_size_limit)
{
    struct rig *r = calloc(1, sizeof *r);
    const uint8_t client[48] = "the secret of the client's records, 48 bytes !!";
    const uint8_t server[48] = "the secret of the server's records, 48 bytes !!";

    cr_assert(r);
    r->c.aead = nj_tls_aead_new(engine);
    r->c.kdf = nj_tls_kdf_new();
    cr_assert(r->c.aead && r->c.kdf);
    r->expanded = rig_expanded(r->c.aead);
    cr_assert(nj_tls_keys_derive(&r->to_server, r->c.kdf, cipher, client));
    cr_assert(nj_tls_keys_derive(&r->from_server, r->c.kdf, cipher, server));
    nj_tls_session_init(&r->s, &r->to_server, &r->from_server, record_size_limit);
    return r;
}

static inline struct rig *rig_new(void)
{
    return rig_new_with(NJ_TLS_ENGINE_AUTO, NJ_TLS_AES_128_GCM_SHA256,
                        NJ_TLS_RECORD_SIZE_LIMIT_MAX);
}

static inline void rig_free(struct rig *r)
{
    free(r->expanded);
    nj_tls_kdf_free(r->c.kdf);
    nj_tls_aead_free(r->c.aead);
    free(r);
}

/* --- the client sends ------------------------------------------------------------------------ */

static inline struct nj_tls_input rig_input_raw(struct rig *r, uint32_t n_record)
{
    const struct nj_tls_src src = {r->record, n_record};

    return nj_tls_session_input(&r->s, &r->c, r->expanded, &src, 1, r->scratch, sizeof r->scratch,
                                r->now);
}

/* A record with this type and content. */
static inline struct nj_tls_input rig_input(struct rig *r, enum nj_tls_content_type type,
                                            const void *content, uint32_t n)
{
    const struct nj_tls_src src = {content, n};
    const struct nj_tls_dst dst = {r->record, sizeof r->record};
    int n_record =
        nj_tls_record_seal(r->c.aead, &r->to_server, r->expanded, type, &src, 1, &dst, 1);

    cr_assert_gt(n_record, 0);
    return rig_input_raw(r, (uint32_t)n_record);
}

/* The client goes on with its next key. */
static inline void rig_client_updates(struct rig *r)
{
    struct nj_tls_keys next;

    cr_assert(nj_tls_keys_derive_next(&next, r->c.kdf, &r->to_server));
    r->to_server = next;
}

static inline struct nj_tls_input rig_key_update(struct rig *r, uint8_t request)
{
    const uint8_t message[5] = {24, 0, 0, 1, request};
    struct nj_tls_input in = rig_input(r, NJ_TLS_HANDSHAKE, message, sizeof message);

    rig_client_updates(r);
    return in;
}

/* --- the server sends ------------------------------------------------------------------------ */

/* The room behind the output so far. */
static inline struct nj_tls_dst rig_room(struct rig *r)
{
    return (struct nj_tls_dst){r->out + r->n_out, RIG_OUT_BYTES - r->n_out};
}

static inline int rig_written(struct rig *r, int n)
{
    r->n_out += n > 0 ? (uint32_t)n : 0;
    return n;
}

static inline int rig_send(struct rig *r, const void *data, uint32_t n, uint32_t record_max)
{
    const struct nj_tls_src src = {data, n};
    const struct nj_tls_dst dst = rig_room(r);

    return rig_written(
        r, nj_tls_session_seal(&r->s, &r->c, r->expanded, record_max, &src, 1, &dst, 1));
}

static inline int rig_send_key_update(struct rig *r)
{
    const struct nj_tls_dst dst = rig_room(r);

    return rig_written(r, nj_tls_session_write_key_update(&r->s, &r->c, r->expanded, &dst, 1));
}

static inline int rig_send_alert(struct rig *r, enum nj_tls_alert alert)
{
    const struct nj_tls_dst dst = rig_room(r);

    return rig_written(r, nj_tls_session_write_alert(&r->s, &r->c, r->expanded, alert, &dst, 1));
}

/* The client opens the next record. Returns its type, or 0 if there is none. */
static inline int rig_next_record(struct rig *r)
{
    int size = nj_tls_record_size(r->out + r->n_read, r->n_out - r->n_read);

    if (size == 0)
        return 0;
    cr_assert(size > 0 && (uint32_t)size <= r->n_out - r->n_read);
    const struct nj_tls_src src = {r->out + r->n_read, (uint32_t)size};
    cr_assert_eq(nj_tls_record_open(r->c.aead, &r->from_server, r->expanded, &src, 1, r->content,
                                    sizeof r->content, &r->opened),
                 0);
    r->n_read += (uint32_t)size;
    return r->opened.type;
}

/* The next record is a KeyUpdate: the client reads on with the server's next key. Returns
 * request_update. */
static inline uint8_t rig_expect_key_update(struct rig *r)
{
    struct nj_tls_keys next;

    cr_assert_eq(rig_next_record(r), NJ_TLS_HANDSHAKE);
    cr_assert(r->opened.n_bytes == 5 && memcmp(r->content, "\x18\0\0\1", 4) == 0);
    cr_assert(nj_tls_keys_derive_next(&next, r->c.kdf, &r->from_server));
    r->from_server = next;
    return r->content[4];
}

static inline void rig_expect_data(struct rig *r, const void *data, uint32_t n)
{
    cr_assert_eq(rig_next_record(r), NJ_TLS_APPLICATION_DATA);
    cr_assert_eq(r->opened.n_bytes, n);
    cr_assert_eq(memcmp(r->content, data, n), 0);
}
