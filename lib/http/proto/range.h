/* SPDX-License-Identifier: BSD-3-Clause */
/* The Range field (RFC 9110 14). Pure. */
#ifndef NJ_HTTP_PROTO_RANGE_H
#define NJ_HTTP_PROTO_RANGE_H

#include <stdint.h>

#include "base/field.h"

/* Ranges that one response may have. Each costs some 200 bytes of text around its own, and a read
 * of its own of a large file. */
#define NJ_RANGES_MAX 16u

struct nj_range {
    uint64_t first, n_bytes; /* n_bytes > 0 */
};

struct nj_ranges {
    uint32_t n;
    struct nj_range range[NJ_RANGES_MAX]; /* within the file, in the order they were asked for */
};

enum nj_ranges_result {
    NJ_RANGES_IGNORED, /* not understood, or more than we are willing to do: send it whole */
    NJ_RANGES_OK,
    NJ_RANGES_UNSATISFIABLE, /* 416 */
};

/*
 * What a Range field asks of `size_bytes` bytes. Ignored are: units other than bytes, bad syntax
 * (RFC 9110 14.2 leaves it to us), more than NJ_RANGES_MAX ranges, and ranges that overlap: so no
 * more is ever sent than the file has, and 200 instead. Of several ranges those that are beyond the
 * end are dropped.
 */
enum nj_ranges_result nj_ranges_parse(struct nj_str value, uint64_t size_bytes,
                                      struct nj_ranges *out);

#endif
