/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The contents of a folder as a page for people (HTML) or for programs (JSON). Pure: who reads the
 * folder brings the names, whatever bytes they are of.
 *
 * JSON: {"path":"/iso/","cut":false,"entries":[{"name":"a b","type":"file","size":3,
 *        "mtime":"1994-11-06T08:49:37Z","href":"a%20b"}]}
 * `type` is "file" or "folder"; the size of a folder is null. What is no UTF-8 in a name is shown
 * as U+FFFD; href has every byte, and goes with the folder's own URL.
 */
#ifndef NJ_HTTP_FILES_DIR_LISTING_H
#define NJ_HTTP_FILES_DIR_LISTING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct nj_listing_entry {
    const char *name; /* not empty, no '/' */
    bool is_folder;
    uint64_t size_bytes; /* of a file */
    int64_t mtime_s;     /* UNIX time */
};

struct nj_listing {
    const char *path; /* of the folder, without '/' at its ends; "" for the root */
    struct nj_listing_entry *entries;
    uint32_t n_entries;
    bool is_cut; /* there were more */
};

/* May this name stand in a listing? Not what is hidden, nor what no request can name (path.h). */
bool nj_listing_shows(const char *name);

/* Folders first, then by name, byte by byte. */
void nj_listing_sort(struct nj_listing *l);

/* Write the page to `out`, as far as it fits. Returns the bytes of the whole page; not terminated.
 */
size_t nj_listing_render(const struct nj_listing *l, bool json, char *out, size_t n_out);

#endif
