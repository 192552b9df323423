/* SPDX-License-Identifier: BSD-3-Clause */
/* Fuzz target: any request target. Accepted ones name a path below the root, and redirects stay on
 * this host. */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "http/proto/path.h"

static void require(int cond)
{
    if (!cond)
        abort();
}

static void check_segments(const struct nj_path *p, bool hidden)
{
    const char *seg = p->name;

    for (;;) {
        size_t n = strcspn(seg, "/");
        require(n > 0 && n < NJ_PATH_MAX);
        require(!(n == 1 && seg[0] == '.') && !(n == 2 && memcmp(seg, "..", 2) == 0));
        require(hidden || seg[0] != '.' || (n == 11 && memcmp(seg, ".well-known", 11) == 0));
        if (!seg[n])
            return;
        seg += n + 1;
    }
}

/* The path of policy and routes and the path of the opened file have the same bytes. */
static void check_plain(const struct nj_path *p)
{
    const struct nj_str plain = {p->plain, p->n_path};

    require(p->plain + 1 == p->name && p->plain[0] == '/');
    require(p->n_path == 1 + p->n_bytes - (p->had_slash ? strlen("index.html") : 0));
    require(p->had_slash == (plain.p[plain.n_bytes - 1] == '/'));
    if (!memchr(plain.p, '%', plain.n_bytes) && !memchr(plain.p, '?', plain.n_bytes) &&
        !memchr(plain.p, '#', plain.n_bytes))
        require(nj_path_is_plain(plain));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
    static struct nj_path p;
    static char location[NJ_PATH_LOCATION_MAX];

    enum nj_path_result r = nj_path_parse((struct nj_str){(const char *)data, (uint32_t)n_bytes},
                                          NJ_STR("index.html"), NULL, &p);
    if (r != NJ_PATH_OK && r != NJ_PATH_HIDDEN)
        return 0;
    require(p.n_bytes > 0 && p.n_bytes < NJ_PATH_MAX && strlen(p.name) == p.n_bytes);
    require(p.name[0] != '/' && p.name[p.n_bytes - 1] != '/' && !strchr(p.name, '\\'));
    check_segments(&p, r == NJ_PATH_HIDDEN);
    check_plain(&p);
    for (uint32_t i = 0; i < p.n_bytes; i++)
        require((uint8_t)p.name[i] >= 0x20 && p.name[i] != 0x7f);
    if (p.had_slash || r == NJ_PATH_HIDDEN || n_bytes >= NJ_PATH_MAX) /* otherwise it is refused */
        return 0;

    size_t n =
        nj_path_dir_location((struct nj_str){p.name, (uint32_t)strlen(p.name)}, p.query, location);
    require(n >= 3 && n <= sizeof location && location[0] == '/' && location[1] != '/');
    for (size_t i = 0; i < n; i++)
        require(location[i] > 0x20 && location[i] < 0x7f && location[i] != '\\');
    /* The redirect leads to the index of the same folder. */
    if (n < NJ_PATH_MAX - 11) {
        static struct nj_path again;
        require(nj_path_parse((struct nj_str){location, (uint32_t)n}, NJ_STR("index.html"), NULL,
                              &again) == NJ_PATH_OK);
        require(again.had_slash && memcmp(again.name, p.name, p.n_bytes) == 0);
    }
    return 0;
}
