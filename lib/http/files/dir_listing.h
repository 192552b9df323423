/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Renders the contents of a folder as HTML or as JSON. Pure: the caller provides the names, which
 * may have any bytes.
 *
 * JSON: {"path":"/iso/","entries":[{"name":"a b","type":"file","size":3,
 *        "mtime":"1994-11-06T08:49:37Z","href":"a%20b"}]}
 *
 * `type` is "file" or "folder"; the size of a folder is null. Bytes of a name that are not UTF-8
 * are shown as U+FFFD. href encodes every byte and is relative to the folder's URL.
 */
#pragma once

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
    const char *path; /* of the folder, without '/' at either end; "" for the root */
    struct nj_listing_entry *entries;
    uint32_t n_entries;
};

/* True if a listing may show this name: not hidden, and a request can name it
 * (http/proto/path.h). */
bool nj_listing_may_show(const char *name);

/* Sorts entries: folders first, then by the bytes of the name. */
void nj_listing_sort(struct nj_listing *l);

/* Writes the page to `out` as far as it fits. Returns the length of the whole page; not
 * terminated. */
size_t nj_listing_render(const struct nj_listing *l, bool json, char *out, size_t n_out);
