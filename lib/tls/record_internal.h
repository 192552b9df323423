/* SPDX-License-Identifier: BSD-3-Clause */
/* Positions in scattered input and output, so that several records can be cut from the same pieces.
 */
#pragma once

#include "tls/record.h"

struct nj__tls_reader {
    const struct nj_tls_src *src;
    uint32_t n_src;
    uint32_t at; /* offset in src[0] */
};

struct nj__tls_writer {
    const struct nj_tls_dst *dst;
    uint32_t n_dst;
    uint32_t at;
};

/* Bytes of all pieces; UINT64_MAX is out of reach. */
uint64_t nj__tls_src_bytes(const struct nj_tls_src *src, uint32_t n_src);
uint64_t nj__tls_dst_bytes(const struct nj_tls_dst *dst, uint32_t n_dst);

/* As nj_tls_record_seal(), for the next `n_content` bytes of `in`. Both have enough bytes, and
 * n_content is at most NJ_TLS_CONTENT_MAX. */
int nj__tls_seal_next(struct nj_tls_aead *a, struct nj_tls_keys *k,
                      struct nj_tls_expanded *expanded, enum nj_tls_content_type type,
                      struct nj__tls_reader *in, uint32_t n_content, struct nj__tls_writer *out);
