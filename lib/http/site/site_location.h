/* SPDX-License-Identifier: BSD-3-Clause */
/* Makes the target of a redirect from the operator's text. Pure. */
#pragma once

#include "http/proto/path.h"
#include "site/site_table.h"

/* A text of the operator, a host, and an encoded path with its query, once. */
struct nj_site_location {
    uint32_t n_bytes;
    char text[NJ_SITE_TEMPLATE_MAX + NJ_SITE_HOST_MAX + NJ_PATH_LOCATION_MAX];
};

/* What the variables stand for. */
struct nj_site_variables {
    struct nj_str host; /* without port; of a client, so it may be anything */
    struct nj_str path,
        query;            /* plain, and as sent: those of one target of less than NJ_PATH_MAX */
    struct nj_str prefix; /* $rest is what follows it in the path */
};

/* Replaces $host, and $path or $rest; the text has each at most once. False: it has $host, and the
 * host cannot stand in a URL. */
bool nj_site_write_location(struct nj_site_location *l, struct nj_str text,
                            const struct nj_site_variables *v);
