/* SPDX-License-Identifier: BSD-3-Clause */
/* Proactive content negotiation (RFC 9110 12.1): content codings, and JSON or HTML. Pure. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"
#include "http/files/file_ops.h"

/* Weights of codings in thousandths; 0: not acceptable. The last is "identity" (no coding), which
 * has the lowest non-zero weight if the client does not list it. */
struct nj_accepted_codings {
    uint16_t q[NJ_N_CODINGS + 1];
};

#define NJ_CODING_IDENTITY NJ_N_CODINGS

/* Parses Accept-Encoding. `value.p` NULL: no such field. RFC 9110 would then allow any coding; here
 * the client is assumed not to decode any. */
struct nj_accepted_codings nj_accept_encoding_parse(struct nj_str value);

/* The coding with the highest weight of those available; `siblings` as in nj_file_job. At equal
 * weights: the one that is likely the smallest. If none is acceptable: NJ_CODING_IDENTITY, as
 * without the field (RFC 9110 12.4.1 allows that or 406). */
uint32_t nj_coding_select(const struct nj_accepted_codings *c, uint8_t siblings);

/* The coding's name in Content-Encoding, and its suffix of file names. */
extern const struct nj_str nj_coding_name[NJ_N_CODINGS + 1], nj_coding_suffix[NJ_N_CODINGS];

/* True if this Accept field prefers JSON to HTML. At equal weights JSON must be named more
 * precisely. */
bool nj_accept_prefers_json(struct nj_str value);
