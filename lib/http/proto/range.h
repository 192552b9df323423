/* SPDX-License-Identifier: BSD-3-Clause */
/* The Range field (RFC 9110 14): byte ranges of a file. Pure. */
#pragma once

#include <stdint.h>

#include "base/str.h"

/* Ranges that one response may have. Each costs a multipart header, some 100 bytes and the media
 * type, and a read of its own if the file is large. Clients that update a file by its parts, such
 * as those of zchunk, ask for 200 and more. */
#define NJ_RANGES_MAX          256u
/* More ranges than these must be in ascending order and worth their headers. */
#define NJ_RANGES_UNSORTED_MAX 16u
/* Bytes of a multipart header at most, without the media type and the three numbers. */
#define NJ_RANGE_HEADER_BYTES  81u

struct nj_range {
    uint64_t first, n_bytes; /* n_bytes > 0 */
};

struct nj_ranges {
    uint32_t n;
    struct nj_range range[NJ_RANGES_MAX]; /* within the file, in the order of the field */
};

enum nj_ranges_result {
    NJ_RANGES_IGNORED, /* malformed or refused: send the whole file */
    NJ_RANGES_OK,
    NJ_RANGES_UNSATISFIABLE, /* 416 */
};

/*
 * Parses a Range field for a file of `size_bytes` bytes, whose media type has `n_type` bytes.
 * Ignored are: units other than bytes, bad syntax, more than NJ_RANGES_MAX ranges, and overlapping
 * ranges; of more than NJ_RANGES_UNSORTED_MAX ranges also those that do not ascend, and those that
 * with their headers are longer than the file (RFC 9110 14.2 and 17.15 allow that). So a response
 * never has more bytes than the file and NJ_RANGES_UNSORTED_MAX headers. Of several ranges those
 * beyond the end are dropped.
 */
enum nj_ranges_result nj_ranges_parse(struct nj_str value, uint64_t size_bytes, uint32_t n_type,
                                      struct nj_ranges *out);
