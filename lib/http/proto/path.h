/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Request targets in origin or asterisk form, the plain paths they denote, and file names below the
 * root (RFC 3986 3.3, RFC 9112 3.2). Pure.
 *
 * A target is decoded once and checked segment by segment. The result is its plain path, which
 * policy, routes and files all use: percent-decoded, without the query, with "//" collapsed to "/".
 * It begins with '/', and no segment is empty (except after a last '/'), "." or "..". A target
 * without a plain path is BAD everywhere. The bytes after the first '/' are a file name that can be
 * passed to a file port as is.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"
#include "base/limits.h"

enum nj_path_result {
    NJ_PATH_OK,
    /* Malformed or ambiguous: 400. Causes: a dot segment, an encoded '/', a backslash or control
     * character (encoded or not), an invalid percent-encoding, a '#', or no leading '/'. */
    NJ_PATH_BAD,
    NJ_PATH_ASTERISK, /* "*", the server as a whole (RFC 9112 3.2.4): only OPTIONS may have it */
    NJ_PATH_TOO_LONG, /* without its query: 414 */
    NJ_PATH_HIDDEN,   /* a segment begins with '.' and is not served: 404 */
};

#define NJ_DOTFILES_MAX 16u

/* Names that begin with a dot and are served. */
struct nj_dotfiles {
    uint32_t n;
    struct nj_str name[NJ_DOTFILES_MAX];
};

/* Parses names that are separated by commas, or "none". `out` refers to the text. False: a name
 * does not begin with a dot, or no path can have it, or there are too many. */
bool nj_dotfiles_parse(const char *text, struct nj_dotfiles *out);

struct nj_path {
    uint32_t n_path;     /* length of plain, without the index file's name */
    uint32_t n_bytes;    /* length of name, without the terminator */
    bool had_slash;      /* the target ended in '/': name ends in the index file's name */
    struct nj_str query; /* within the target, with its '?'; empty if absent */
    union {
        char plain[1 + NJ_PATH_MAX];
        struct {
            char slash;
            char name[NJ_PATH_MAX]; /* terminated */
        };
    };
};

/* A file name with its hash, as hash tables look it up. */
struct nj_file_name {
    const char *p; /* n_bytes < NJ_PATH_MAX */
    uint32_t n_bytes;
    uint64_t hash; /* keyed */
};

/* Parses `target` (path and query as sent) into its plain path and file name. `index`, a single
 * segment, is appended to the name of a folder. `dotfiles` are served; NULL: .well-known,
 * .treeinfo, .discinfo. `out` is only valid on OK and HIDDEN. */
enum nj_path_result nj_path_parse(struct nj_str target, struct nj_str index,
                                  const struct nj_dotfiles *dotfiles, struct nj_path *out);

/* True if a plain path can begin with `path`. For paths from an operator: a percent-encoding, '?'
 * and '#' are refused, too, because in a target they would have another meaning. */
bool nj_path_is_plain(struct nj_str path);

/* True if `path` is '/' and a file name of 1 to NJ_PATH_MAX - 1 bytes without empty, "." or ".."
 * segments. Segments may begin with a dot. For paths from handlers. */
bool nj_path_is_valid_file_path(struct nj_str path);

/* Writes a plain path, or the rest of one, and the query of its target, percent-encoded as below.
 * Returns the length; at most NJ_PATH_LOCATION_MAX for path and query of one target. */
size_t nj_path_encode(struct nj_str path, struct nj_str query, char *out);

/* Longest result of nj_path_dir_location(): every byte encoded, and two slashes. */
#define NJ_PATH_LOCATION_MAX (3 * NJ_PATH_MAX + 2)

/*
 * Writes the target of the directory `name`: "/name/?query", percent-encoded (RFC 3986 2.1). It
 * starts with exactly one '/', and no byte of it can end a header line. Returns its length. `name`
 * and `query` come from one target, so together they are shorter than NJ_PATH_MAX. `out` has
 * NJ_PATH_LOCATION_MAX bytes and is not terminated.
 */
size_t nj_path_dir_location(struct nj_str name, struct nj_str query, char *out);
