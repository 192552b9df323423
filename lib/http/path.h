/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Request targets as they come from a peer, and file names below the root.
 *
 * A target is decoded once and checked segment by segment. What comes out can be given to a file
 * port as it is: it never begins or ends with '/', and no segment of it is empty, "." or "..".
 */
#ifndef NJ_HTTP_PATH_H
#define NJ_HTTP_PATH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/field.h"
#include "base/limits.h"

enum nj_path_result {
    NJ_PATH_OK,
    NJ_PATH_BAD,      /* malformed, or an attempt to leave the root: 400 */
    NJ_PATH_TOO_LONG, /* 414 */
    NJ_PATH_HIDDEN,   /* a segment starts with '.': 404 */
};

struct nj_path {
    uint32_t n_bytes;       /* of name, without the terminator */
    bool had_slash;         /* the target ended in '/': name ends in that of the index */
    struct nj_str query;    /* in the target, with its '?'; empty when there is none */
    char name[NJ_PATH_MAX]; /* terminated */
};

/* Turn `target` (path and query as sent) into a file name; a folder into that of its `index`, a
 * single segment. `out` is only meaningful on OK. */
enum nj_path_result nj_path_parse(struct nj_str target, struct nj_str index, struct nj_path *out);

/* Longest thing nj_path_location() writes: a target in which every byte is escaped, two slashes. */
#define NJ_PATH_LOCATION_MAX (3 * NJ_PATH_MAX + 2)

/*
 * The target that names the directory `name`: "/name/?query", escaped (RFC 3986 2.1), so that it
 * starts with exactly one '/' and no byte of it can end a header line. Returns its length.
 * Both come from one target, so together they are shorter than NJ_PATH_MAX. `out` has
 * NJ_PATH_LOCATION_MAX bytes; it is not terminated.
 */
size_t nj_path_location(const char *name, struct nj_str query, char *out);

#endif
