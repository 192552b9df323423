/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The client's side of TLS 1.3: handshakes by OpenSSL's libssl on bytes in memory, then records by
 * lib/tls. It verifies no certificate: it measures servers. Only the lcore calls these functions.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "tls/record.h"

struct load_tls;      /* of an lcore */
struct load_tls_conn; /* of a connection */

/* Bytes of load_tls_seal() for `n` bytes. */
static inline uint32_t load_tls_sealed_bytes(uint32_t n)
{
    return n + (n + NJ_TLS_CONTENT_MAX - 1) / NJ_TLS_CONTENT_MAX * NJ_TLS_RECORD_OVERHEAD;
}

/* `alpn`: the only protocol (RFC 7301). `server_name`: for SNI (RFC 6066 3), or NULL. Both stay the
 * caller's. NULL: no memory, or OpenSSL cannot be used. */
struct load_tls *load_tls_new(const char *alpn, const char *server_name);
void load_tls_free(struct load_tls *t);

/* Begins a handshake, whose first output is the ClientHello. NULL: no memory. */
struct load_tls_conn *load_tls_open(struct load_tls *t);
/* `c` may be NULL. */
void load_tls_close(struct load_tls_conn *c);
bool load_tls_is_established(const struct load_tls_conn *c);
/* The peer has said that it sends nothing more (close_notify). */
bool load_tls_is_closed(const struct load_tls_conn *c);

/* Why the last call failed. A static text. */
const char *load_tls_fault(const struct load_tls_conn *c);

/* Processes a record of the handshake. False: it failed. */
bool load_tls_handshake(struct load_tls_conn *c, const struct nj_tls_src *record, uint32_t n_src);
/* Bytes of the handshake to be sent, valid until the next call. */
uint32_t load_tls_output(struct load_tls_conn *c, const uint8_t **data);

/* Opens a record of an established connection. Returns the bytes of application data at *data,
 * valid until the next call of the lcore; 0: there are none in it; -1: it is not valid, or an
 * alert other than close_notify. */
int load_tls_read(struct load_tls_conn *c, const struct nj_tls_src *record, uint32_t n_src,
                  const uint8_t **data);
/* Seals `n` bytes into `out`, which has room for load_tls_sealed_bytes(n). Returns the bytes
 * written, or 0 when the key has sealed all records that it may. */
uint32_t load_tls_seal(struct load_tls_conn *c, const uint8_t *data, uint32_t n, uint8_t *out);
