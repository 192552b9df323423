/* SPDX-License-Identifier: BSD-3-Clause */
/* The options of HTTP, as the operator set them. lib/config fills one struct for the whole server;
 * a policy has a const pointer to it (shape/request_policy.h), and shards take both in one step.
 * Read-only: any thread. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/types.h"
#include "http/files/file_server_options.h"

struct nj_http_options {
    uint32_t header_bytes_max; /* of a request head, as RFC 9113 6.5.2 counts; above: 431 */
    uint32_t header_fields_max;
    nj_ns preface_timeout; /* from the handshake of TCP to the first bytes of the client */
    nj_ns idle_timeout;    /* of a connection without an open request */
    nj_ns header_timeout;  /* from the first byte of a header block to its last */
    nj_ns body_timeout;    /* longest time without progress of a request body */
    nj_ns send_timeout;    /* longest time without progress of a response that has credit, or of its
                              file */
    uint64_t min_rate;     /* bytes per second that a peer must acknowledge on the average of
                              send_timeout, without time paced by our limits; 0: no minimum */
    /* Bytes per second of a request body that a peer must send on the average of body_timeout,
     * while the server waits for it and no response has begun. 0: no minimum. */
    uint64_t min_upload_rate;
    nj_ns body_deadline; /* from a request to the end of its body, until a response begins; 0: none
                          */
    uint64_t body_max;   /* longest request body, above: 413; 0: the limit of the route */
    bool no_files;       /* requests outside routes are answered with 404 */
    bool no_http1;       /* connections that speak HTTP/1.x are refused */
    struct nj_file_server_options files;
};

/* The options of an operator who set none. */
extern const struct nj_http_options nj_http_options_default;
