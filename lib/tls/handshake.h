/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The server's side of a handshake of TLS 1.3 (RFC 8446 2 and 4), made by OpenSSL's libssl on bytes
 * in memory. It ends with the traffic secrets; libssl is not used after that.
 *
 * Only TLS 1.3 is accepted. ALPN (RFC 7301) selects h2 if the client offers it (RFC 9113 3.2), else
 * http/1.1 or http/1.0 if it is offered and the context permits HTTP/1. A client without ALPN gets
 * HTTP/1.1, if permitted. There is no early data (0-RTT) and no authentication after the handshake.
 *
 * One thread at a time uses a handshake; it may be another thread for each call.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "site/site_table.h"
#include "tls/record.h"
#include "tls/server_context.h"

#define NJ_TLS_NAME_BYTES         256u
#define NJ_TLS_RECORD_LIMIT_LEAST 64u /* RFC 8449 4 */

enum nj_tls_handshake_result {
    NJ_TLS_HANDSHAKE_MORE,   /* bytes of the client are needed */
    NJ_TLS_HANDSHAKE_DONE,   /* the secrets are known */
    NJ_TLS_HANDSHAKE_FAILED, /* an alert may be in the output; the connection ends after it */
};

/* Why a handshake failed. */
enum nj_tls_failure {
    NJ_TLS_FAIL_NONE,
    NJ_TLS_FAIL_VERSION,     /* the client has no TLS 1.3 */
    NJ_TLS_FAIL_NEGOTIATION, /* no cipher suite, group or signature algorithm in common */
    NJ_TLS_FAIL_ALPN,        /* the client offers no protocol that the context permits */
    NJ_TLS_FAIL_CLIENT_CERT, /* no certificate of the client, or one that does not verify */
    NJ_TLS_FAIL_ALERT,       /* the client sent an alert */
    NJ_TLS_FAIL_MESSAGE,     /* malformed or unexpected bytes */
    NJ_TLS_FAIL_MEMORY,
    NJ_TLS_N_FAILURES
};

/* The protocol above TLS. */
enum nj_tls_protocol { NJ_TLS_HTTP2, NJ_TLS_HTTP1 };

/* Valid after DONE. */
struct nj_tls_handshake_info {
    uint16_t cipher; /* enum nj_tls_cipher */
    uint8_t n_secret;
    uint8_t client_secret[NJ_TLS_SECRET_BYTES_MAX]; /* client_application_traffic_secret_0 */
    uint8_t server_secret[NJ_TLS_SECRET_BYTES_MAX];
    /* Records that the output has already sealed with the server's first keys (tickets): the first
     * record of the connection has this number. */
    uint32_t n_server_records;
    /* The longest plaintext of a record that the client accepts, without the byte of its type (RFC
     * 8449 4, where the limit counts that byte; RFC 6066 4). */
    uint16_t record_plain_max;
    bool resumed;
    enum nj_tls_protocol protocol;    /* agreed in this handshake, also if it resumes a session */
    struct nj_site_identity identity; /* that the server name has */
    char server_name[NJ_TLS_NAME_BYTES];    /* "": none was given */
    bool has_client_cert;                   /* it was verified */
    char client_subject[NJ_TLS_NAME_BYTES]; /* of it (RFC 4514); may be "" */
};

struct nj_tls_handshake;

/* Returns NULL if there is no memory. Takes a reference of the context. */
struct nj_tls_handshake *nj_tls_handshake_new(struct nj_tls_server_context *c);
/*
 * After DONE, before release: has a reload replaced the context since the handshake began, and do
 * the authorities of the new one not verify the client's certificate? Then the handshake has
 * FAILED, and its output, a ticket that could be resumed, is dropped.
 */
enum nj_tls_handshake_result nj_tls_handshake_recheck(struct nj_tls_handshake *h,
                                                      struct nj_tls_current_context *current);
/* Frees all but the output, the information and the failure: some 150 objects of libssl, which are
 * in the caches of the CPU that made the handshake. After DONE, FAILED, or instead of a further
 * input. */
void nj_tls_handshake_release(struct nj_tls_handshake *h);
bool nj_tls_handshake_is_released(const struct nj_tls_handshake *h);
/* Wipes the secrets. `h` may be NULL. */
void nj_tls_handshake_free(struct nj_tls_handshake *h);

/*
 * Processes complete records of the client among the `n` bytes at `data`. *n_used is the number of
 * bytes that were used: an incomplete record at the end is not, and neither is what follows the
 * last record of the handshake. A header that cannot be one (nj_tls_record_size()) ends it with an
 * alert. It takes up to some 100 us of CPU time for a signature with ECDSA,
 * a millisecond with RSA. Not to be called again after DONE or FAILED.
 */
enum nj_tls_handshake_result nj_tls_handshake_input(struct nj_tls_handshake *h, const uint8_t *data,
                                                    uint32_t n, uint32_t *n_used);
/* The bytes to be sent, which the handshake keeps until the next input. Returns their number. */
uint32_t nj_tls_handshake_output(const struct nj_tls_handshake *h, const uint8_t **data);
/* Valid after DONE, until the handshake is freed. */
const struct nj_tls_handshake_info *nj_tls_handshake_info(const struct nj_tls_handshake *h);
/* After FAILED. */
enum nj_tls_failure nj_tls_handshake_failure(const struct nj_tls_handshake *h);
/* Reads a line that libssl gives to a callback for the log of secrets: LABEL, the client's random
 * and the secret, with a space between them. If it has this label and a valid secret, copies the
 * secret to `out` (NJ_TLS_SECRET_BYTES_MAX) and returns its bytes; else 0. */
uint8_t nj_tls_read_secret_line(const char *line, const char *label, uint8_t *out);
