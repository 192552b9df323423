/* SPDX-License-Identifier: BSD-3-Clause */
/* Which of several forms of a file a client would like (RFC 9110 12). Pure. */
#ifndef NJ_HTTP_PROTO_NEGOTIATE_H
#define NJ_HTTP_PROTO_NEGOTIATE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/field.h"
#include "http/files/file_ops.h"

/* Weights of codings in thousandths, 0: not acceptable. The last is "identity", no coding at all,
 * which weighs the least there is when the client does not speak of it. */
struct nj_codings {
    uint16_t q[NJ_N_CODINGS + 1];
};

#define NJ_NO_CODING NJ_N_CODINGS

/* Of Accept-Encoding. `value.p` NULL: there was no such field, and then any coding would do, but a
 * client that does not ask is taken for one that can't decode. */
struct nj_codings nj_codings_parse(struct nj_str value);

/* The best of what there is: `siblings` as in nj_file_job. At equal weights the one that is likely
 * to be the smallest. When nothing is acceptable: NJ_NO_CODING, as if the client had not asked (RFC
 * 9110 12.4.1 leaves us the choice between that and 406, which helps nobody). */
uint32_t nj_codings_pick(const struct nj_codings *c, uint8_t siblings);

/* Its name in Content-Encoding, and what it adds to the name of a file. */
struct nj_str nj_coding_name(uint32_t coding);
struct nj_str nj_coding_suffix(uint32_t coding);

/* Does this Accept field prefer JSON to HTML? At equal weights it must name it more precisely. */
bool nj_accept_json(struct nj_str value);

#endif
