/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A TLS 1.3 connection after its handshake (RFC 8446 4.6.3, 5, 6), as a machine without I/O: it
 * takes complete records and tells what they are, and makes the records that carry application
 * data, KeyUpdate and alerts.
 *
 * A struct nj_tls_session is all the state that an idle connection has. Expanded keys, the output,
 * and the buffer for plaintext are memory of the caller, who may share them between connections;
 * `expanded` is a cache in each call (nj_tls_expand()), one for both directions if need be.
 *
 * One thread uses a session, together with a struct nj_tls_crypto of that thread. Memory is
 * allocated at a KeyUpdate only, by OpenSSL and until the new key is made.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/types.h"
#include "tls/record.h"

/* Contexts of one thread, which outlive its sessions. */
struct nj_tls_crypto {
    struct nj_tls_aead *aead;
    struct nj_tls_kdf *kdf;
};

/* Bounds of the peer's record_size_limit (RFC 8449 4). The greatest means that it sent none. */
#define NJ_TLS_RECORD_SIZE_LIMIT_MIN 64u
#define NJ_TLS_RECORD_SIZE_LIMIT_MAX NJ_TLS_INNER_MAX

/* Empty records and user_canceled alerts from one nj_tls_session_forgive() to the next. OpenSSL
 * accepts as many of each kind in a row. */
#define NJ_TLS_IDLE_RECORDS_MAX 32u
/* KeyUpdates at once, and the time in which one more is accepted, whatever else is received: a
 * KeyUpdate of 27 bytes costs about ten times what a record of one byte does, so data would not pay
 * for it. A key that seals as many records as RFC 8446 5.5 permits is used for longer than a
 * second.
 */
#define NJ_TLS_KEY_UPDATES_MAX  32u
#define NJ_TLS_KEY_UPDATE_TIME  NJ_SEC

/* Application data of one nj_tls_session_seal(): in records of a single byte these are fewer than
 * the key may still seal when a KeyUpdate becomes due. NJ_SENDQ_BYTES_MAX is as much. */
#define NJ_TLS_SEAL_BYTES_MAX (1u << 22)
_Static_assert(NJ_TLS_SEAL_BYTES_MAX + NJ_TLS_GCM_UPDATE_AT < NJ_TLS_GCM_RECORDS_MAX,
               "no key is used up within a call");

#define NJ_TLS_KEY_UPDATE_BYTES        5u /* the message: type, length, request_update */
#define NJ_TLS_KEY_UPDATE_RECORD_BYTES (NJ_TLS_KEY_UPDATE_BYTES + NJ_TLS_RECORD_OVERHEAD)
#define NJ_TLS_ALERT_RECORD_BYTES      (2u + NJ_TLS_RECORD_OVERHEAD)

struct nj_tls_session {
    struct nj_tls_keys read, write;
    nj_ns key_updates_until;    /* when NJ_TLS_KEY_UPDATE_TIME has passed for each one received */
    uint16_t record_size_limit; /* of the peer, RFC 8449 4 */
    uint8_t flags;              /* private */
    uint8_t n_idle_records;
    uint8_t n_message; /* bytes of a KeyUpdate that continues in the next record */
    uint8_t message[NJ_TLS_KEY_UPDATE_BYTES];
};
_Static_assert(sizeof(struct nj_tls_session) <= 256, "memory of an idle connection");

/*
 * Begin with the application traffic keys of both directions, which are copied; the caller wipes
 * its own. Their record numbers are those of the next records: 0, unless records were sent or
 * received with these keys already (NewSessionTicket). `record_size_limit` is the peer's,
 * NJ_TLS_RECORD_SIZE_LIMIT_MAX if it sent none; the caller has checked that it is at least the
 * minimum.
 */
void nj_tls_session_init(struct nj_tls_session *s, const struct nj_tls_keys *read,
                         const struct nj_tls_keys *write, uint16_t record_size_limit);
/* Overwrite all keys. Nothing can be sent or received from then on. */
void nj_tls_session_wipe(struct nj_tls_session *s);

/* --- input ----------------------------------------------------------------------------------- */

enum nj_tls_input_kind {
    NJ_TLS_IN_NOTHING,      /* nothing for the caller: a part of a message, or ignored */
    NJ_TLS_IN_DATA,         /* application data */
    NJ_TLS_IN_KEY_UPDATE,   /* the read keys have changed; an answer may be due */
    NJ_TLS_IN_CLOSE_NOTIFY, /* the peer sends no more; further records are ignored (6.1) */
    NJ_TLS_IN_PEER_ALERT,   /* an error alert of the peer: the connection ends, nothing is sent */
    NJ_TLS_IN_ERROR,        /* the peer's mistake: send `alert`, then end the connection */
};

struct nj_tls_input {
    enum nj_tls_input_kind kind;
    /* PEER_ALERT: the peer's, perhaps of no known number. ERROR: enum nj_tls_alert. */
    uint8_t alert;
    bool is_flood;       /* ERROR: the record is valid, but one too many of its kind */
    const uint8_t *data; /* DATA: in the scratch buffer; at least 1 byte */
    uint32_t n_bytes;
};

/*
 * Process one complete record, which the pieces of `src` hold exactly; nj_tls_record_size() tells
 * where it ends, and the errors of its header. `scratch` has room for the ciphertext without the
 * tag, NJ_TLS_OPEN_ROOM bytes for any record; where it may be is said at nj_tls_record_open().
 * `now` is monotonic.
 *
 * Errors, by alert: those of nj_tls_record_open(). NJ_TLS_UNEXPECTED_MESSAGE: a record of another
 * type (also ChangeCipherSpec), a handshake message that is not a KeyUpdate, bytes after a
 * KeyUpdate in its record, another record within a KeyUpdate that is split (RFC 8446 5.1), an empty
 * handshake or alert record (5.4), or too many records without data (is_flood): more than
 * NJ_TLS_IDLE_RECORDS_MAX, or KeyUpdates beyond NJ_TLS_KEY_UPDATES_MAX.
 * NJ_TLS_DECODE_ERROR: a KeyUpdate or alert of the wrong length.
 * NJ_TLS_ILLEGAL_PARAMETER: a KeyUpdate with another value than 0 and 1 (4.6.3).
 * After an error, an alert or close_notify all further records are ignored.
 */
struct nj_tls_input nj_tls_session_input(struct nj_tls_session *s, const struct nj_tls_crypto *c,
                                         struct nj_tls_expanded *expanded,
                                         const struct nj_tls_src *src, uint32_t n_src,
                                         uint8_t *scratch, uint32_t n_scratch, nj_ns now);

/* Begin to count empty records and user_canceled anew: after work that is worth them, such as data
 * in a record. */
static inline void nj_tls_session_forgive(struct nj_tls_session *s)
{
    s->n_idle_records = 0;
}

/* --- output ---------------------------------------------------------------------------------- */

/* A KeyUpdate has to be sent before further application data: the peer has asked for it (RFC 8446
 * 4.6.3), or a key has been used for many records (5.5). nj_tls_session_seal() does it;
 * nj_tls_session_write_key_update() does it without data. */
bool nj_tls_session_is_key_update_due(const struct nj_tls_session *s);

/* Bytes of output for `n_bytes` of application data in records of at most `record_max` bytes of
 * content, or of what the peer accepts if that is less: what nj_tls_session_seal() writes, with
 * the KeyUpdate if one is due. record_max > 0. 0 for no data. */
uint64_t nj_tls_session_sealed_bytes(const struct nj_tls_session *s, uint64_t n_bytes,
                                     uint32_t record_max);
/* The most application data, up to NJ_TLS_SEAL_BYTES_MAX, whose output fits into `n_room` bytes:
 * the inverse of nj_tls_session_sealed_bytes(). */
uint32_t nj_tls_session_content_that_fits(const struct nj_tls_session *s, uint32_t n_room,
                                          uint32_t record_max);

/*
 * Seal the bytes of all `src`, as many records as they need, each but the last with `record_max`
 * bytes of content, or with what the peer accepts. The output begins at the first piece of `dst`,
 * which do not overlap `src`, and is nj_tls_session_sealed_bytes() long. No key seals more records
 * than it may. Returns the bytes written, or an enum nj_tls_refusal: NJ_TLS_NO_ROOM,
 * NJ_TLS_TOO_LONG (more than NJ_TLS_SEAL_BYTES_MAX bytes), NJ_TLS_CLOSED, NJ_TLS_ENGINE_FAILED.
 */
int nj_tls_session_seal(struct nj_tls_session *s, const struct nj_tls_crypto *c,
                        struct nj_tls_expanded *expanded, uint32_t record_max,
                        const struct nj_tls_src *src, uint32_t n_src, const struct nj_tls_dst *dst,
                        uint32_t n_dst);

/* Write a KeyUpdate with the present key, and go on with the next one, whether it is due or not.
 * Returns NJ_TLS_KEY_UPDATE_RECORD_BYTES, or NJ_TLS_NO_ROOM, NJ_TLS_CLOSED, NJ_TLS_KEY_USED_UP or
 * NJ_TLS_ENGINE_FAILED. */
int nj_tls_session_write_key_update(struct nj_tls_session *s, const struct nj_tls_crypto *c,
                                    struct nj_tls_expanded *expanded, const struct nj_tls_dst *dst,
                                    uint32_t n_dst);

/* Write an alert, after which nothing can be sent. After another alert than NJ_TLS_CLOSE_NOTIFY no
 * record is read, either. Returns NJ_TLS_ALERT_RECORD_BYTES, or as the function above. */
int nj_tls_session_write_alert(struct nj_tls_session *s, const struct nj_tls_crypto *c,
                               struct nj_tls_expanded *expanded, enum nj_tls_alert alert,
                               const struct nj_tls_dst *dst, uint32_t n_dst);

/* Nothing can be sent: an alert was written, or writing failed. */
bool nj_tls_session_is_write_closed(const struct nj_tls_session *s);
/* Records are ignored: the peer has closed, or there was an error. */
bool nj_tls_session_is_read_closed(const struct nj_tls_session *s);
