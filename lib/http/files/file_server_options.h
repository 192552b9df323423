/* SPDX-License-Identifier: BSD-3-Clause */
/* What an operator may choose about a folder that is served. */
#ifndef NJ_HTTP_FILES_FILE_SERVER_OPTIONS_H
#define NJ_HTTP_FILES_FILE_SERVER_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#define NJ_ERROR_PAGES_MAX 16u

struct nj_mime_table; /* http/mime.h: extensions of a mime.types file, looked at before our own */

/* Strings live as long as the site. */
struct nj_site_options {
    const char *index;     /* what "dir/" stands for; NULL: index.html */
    bool listing;          /* a folder without an index is listed, as HTML or as JSON */
    bool no_precompressed; /* files are sent as they are, also where name.br, .zst or .gz is */
    const struct nj_mime_table *mime; /* NULL: our own types only */
    const char *cache_control;        /* of 200, 206 and 304; NULL: no such field */
    uint32_t n_error_pages;
    struct {
        uint16_t status;  /* 400 to 599 */
        const char *path; /* of a file below the root, without '/' before it */
    } error_page[NJ_ERROR_PAGES_MAX];
};

#endif
