/* SPDX-License-Identifier: BSD-3-Clause */
/* Options of a served folder, set by the operator. They live as long as the file server, and so do
 * their strings. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "http/files/mime_type.h"

#define NJ_ERROR_PAGES_MAX 16u

struct nj_dotfiles; /* http/proto/path.h */

/* One folder's options. */
struct nj_file_server_options {
    const char *index;                  /* file served for "dir/"; NULL: index.html */
    const struct nj_dotfiles *dotfiles; /* that are served; NULL: http/proto/path.h */
    bool listing;                       /* list folders without an index file, as HTML or JSON */
    bool no_precompressed;              /* never send the siblings name.br, .zst and .gz */
    struct nj_mime_options mime;
    const char *cache_control; /* value of cache-control in 200, 206 and 304; NULL: none */
    uint32_t n_error_pages;
    struct {
        uint16_t status;  /* 400 to 599 */
        const char *path; /* of a file relative to the root, without leading '/' */
    } error_page[NJ_ERROR_PAGES_MAX];
};
