/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Request targets as they come from a peer, the paths that they name, and file names below the
 * root.
 *
 * A target is decoded once and checked segment by segment. The result is its plain path, which is
 * what policy, routes and files go by, and all of them alike: percent-decoded, without the query,
 * "//" as "/". It begins with '/', and no segment of it is empty (but behind a last '/'), "." or
 * "..". A target that has no such path is BAD for all of them. Behind the first '/' is the name of
 * a file, which can be given to a file port as it is.
 */
#ifndef NJ_HTTP_PROTO_PATH_H
#define NJ_HTTP_PROTO_PATH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/field.h"
#include "base/limits.h"

enum nj_path_result {
    NJ_PATH_OK,
    /* Malformed or ambiguous: 400. A dot segment, an escaped '/', a backslash or control
     * character (escaped or not), a broken escape, a '#', or not a path at all. */
    NJ_PATH_BAD,
    NJ_PATH_TOO_LONG, /* without its query: 414 */
    NJ_PATH_HIDDEN,   /* a segment begins with '.', ".well-known" apart: no file is shown, 404 */
};

struct nj_path {
    uint32_t n_path;     /* of plain; before the name of the index */
    uint32_t n_bytes;    /* of name, without the terminator */
    bool had_slash;      /* the target ended in '/': name ends in that of the index */
    struct nj_str query; /* in the target, with its '?'; empty when there is none */
    union {
        char plain[1 + NJ_PATH_MAX];
        struct {
            char slash;
            char name[NJ_PATH_MAX]; /* terminated */
        };
    };
};

/* The name of a file, as tables of names look for it. */
struct nj_object_name {
    const char *p; /* n_bytes < NJ_PATH_MAX */
    uint32_t n_bytes;
    uint64_t hash; /* keyed */
};

/* The plain path of `target` (path and query as sent), and the file that it names; of a folder that
 * is its `index`, a single segment. `out` is only meaningful on OK and HIDDEN. */
enum nj_path_result nj_path_parse(struct nj_str target, struct nj_str index, struct nj_path *out);

/* Can a plain path begin so? For paths that an operator writes: an escape, '?' and '#' are refused,
 * too, for they would not mean what they mean in a target. */
bool nj_path_is_plain(struct nj_str path);

/* Is it a plain path of a file: '/' and a name of 1 to NJ_PATH_MAX - 1 bytes, whose segments are
 * neither empty nor "." nor ".."? They may begin with a dot. For paths that programs give. */
bool nj_path_names_file(struct nj_str path);

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
