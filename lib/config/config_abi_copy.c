/* SPDX-License-Identifier: BSD-3-Clause */
/* Default values, and conversion of a configuration from another version of nightjar/server.h. The
 * struct is versioned by its size. */
#include "config/config_abi_copy.h"

#include <string.h>

#include "base/set_error.h"
#include "config/option_table.h"
#include "conn/handler_tasks.h"
#include "store/chunk_cache.h"

#define BYTES_MAX (64u << 10) /* a larger size_bytes is uninitialised memory */

void nj_server_config_init_sized(struct nj_server_config *c, size_t size_bytes)
{
    const struct nj_server_config defaults = {
        .size_bytes = size_bytes,
        .listen_port = 80,
        .tls_port = 443,
        .cache_bytes = NJ_FILE_CACHE_BYTES_DEFAULT,
        .conns_max = 65536,
        .fibers_max = NJ_FIBERS_DEFAULT,
        .preface_timeout_s = 10,
        .idle_timeout_s = 75,
        .drain_timeout_s = 10,
        .upgrade_timeout_s = 3600,
        .ready_stall_s = 0.3,
    };

    if (!c)
        return;
    memset(c, 0, size_bytes);
    memcpy(c, &defaults, size_bytes < sizeof defaults ? size_bytes : sizeof defaults);
}

/* Entries after the first NULL of an array would be ignored. */
static int check_arrays(const struct nj_server_config *c, char *why, size_t n)
{
    char name[NJ_OPTION_KEY_BYTES];

    for (const struct nj_option *o = nj_options; o < nj_options + nj_n_options; o++) {
        const char *const *entry = (const void *)((const char *)c + o->offset);
        nj_option_key(&(struct nj_option){.name = o->name}, name); /* that of the field */
        for (unsigned i = 1; o->kind == NJ_OPTION_LIST && i < (unsigned)o->max; i++)
            if (entry[i] && !entry[i - 1])
                return nj_set_error(why, n, "%s[%u] is set, but %s[%u] is not", name, i, name,
                                    i - 1);
    }
    if (c->n_routes > 0 && !c->routes)
        return nj_set_error(why, n, "n_routes is %u, but routes is NULL", c->n_routes);
    return 0;
}

int nj_config_convert_version(struct nj_server_config *to, const struct nj_server_config *from,
                              char *why, size_t n)
{
    if (!from)
        return nj_set_error(why, n, "config is NULL");
    size_t size = from->size_bytes, known = size < sizeof *to ? size : sizeof *to;

    if (size < NJ_CONFIG_BYTES_MIN || size > BYTES_MAX)
        return nj_set_error(why, n,
                            "size_bytes of the configuration is %zu: fill it in with "
                            "nj_server_config_init()",
                            size);
    for (size_t i = known; i < size; i++)
        if (((const unsigned char *)from)[i] != 0)
            return nj_set_error(why, n,
                                "byte %zu of the configuration sets a field that nightjar %s does "
                                "not know: install the version that the program was built with",
                                i, nj_version());
    nj_server_config_init(to);
    memcpy(to, from, known);
    to->size_bytes = sizeof *to;
    return check_arrays(to, why, n);
}
