/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The header of the PROXY protocol, versions 1 and 2: a proxy writes it before all other bytes of a
 * connection, also before those of TLS, to name the client. Follows HAProxy's proxy-protocol.txt
 * (2020/03/05). Pure.
 */
#pragma once

#include <stddef.h>

#include "base/types.h"

/* The longest header. Version 1 has at most 107 bytes. Version 2 could have 65,551; senders keep
 * within a few hundred. nginx accepts as many as we do. */
#define NJ_PROXY_HEADER_BYTES_MAX 4096u

enum nj_proxy_result {
    NJ_PROXY_MORE,      /* the header is incomplete */
    NJ_PROXY_DONE,      /* *out is valid */
    NJ_PROXY_MISSING,   /* the first bytes are of no such header */
    NJ_PROXY_MALFORMED, /* or longer than NJ_PROXY_HEADER_BYTES_MAX, or its checksum is wrong */
};

struct nj_proxy_header {
    uint32_t n_bytes; /* of the header: the stream goes on behind it */
    bool has_source;  /* false: the connection is for itself (LOCAL), or its client has no IP
                         address of TCP (UNKNOWN, AF_UNSPEC, AF_UNIX) */
    struct nj_addr source;
    uint16_t port; /* of the source, host byte order */
};

/* Parses the first `n_bytes` of a connection. MORE: call again with more bytes, from the first one
 * on; the result does not depend on how they were divided. Never MORE for
 * NJ_PROXY_HEADER_BYTES_MAX bytes. Destinations are ignored, and so are fields of type, length and
 * value (TLV), except for the checksum PP2_TYPE_CRC32C. */
enum nj_proxy_result nj_proxy_parse(const uint8_t *data, size_t n_bytes,
                                    struct nj_proxy_header *out);
