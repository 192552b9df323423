/* SPDX-License-Identifier: BSD-3-Clause */
/* Configurations of programs that were built with other versions of nightjar/server.h. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "config/config_abi_copy.h"

#define SIZE sizeof(struct nj_server_config)

static char why[256];

/* A configuration of `size` bytes with its defaults, at the end of accessible memory: a sanitizer
 * reports accesses behind it. */
static struct nj_server_config *of_size(size_t size)
{
    struct nj_server_config *c = malloc(size);

    cr_assert(c);
    memset(c, 0xaa, size);
    nj_server_config_init_sized(c, size);
    cr_assert_eq(c->size_bytes, size);
    return c;
}

Test(config_config_abi_copy, of_this_version)
{
    struct nj_server_config c, copy;

    nj_server_config_init(&c);
    cr_expect_eq(c.size_bytes, sizeof c);
    c.listen_port = 8080;
    c.lcore_ctx = &c;
    cr_assert_eq(nj_config_convert_version(&copy, &c, why, sizeof why), 0);
    cr_expect_eq(copy.listen_port, 8080);
    cr_expect_eq(copy.lcore_ctx, &c);
}

Test(config_config_abi_copy, of_an_older_version)
{
    struct nj_server_config *c = of_size(NJ_CONFIG_BYTES_MIN), copy;

    c->conns_max = 7;
    memset(&copy, 0xaa, sizeof copy);
    cr_assert_eq(nj_config_convert_version(&copy, c, why, sizeof why), 0);
    cr_expect_eq(copy.conns_max, 7);
    cr_expect_eq(copy.size_bytes, sizeof copy);
    cr_expect(!copy.log && !copy.lcore_init && !copy.lcore_fini && !copy.lcore_ctx);
    free(c);
}

Test(config_config_abi_copy, of_a_newer_version)
{
    struct nj_server_config *c = of_size(SIZE + 24), copy;

    cr_expect_eq(c->listen_port, 80);
    cr_assert_eq(nj_config_convert_version(&copy, c, why, sizeof why), 0);
    cr_expect_eq(copy.size_bytes, sizeof copy);
    ((unsigned char *)c)[SIZE + 23] = 1;
    cr_expect_eq(nj_config_convert_version(&copy, c, why, sizeof why), -1);
    cr_expect(strstr(why, "does not know"), "%s", why);
    free(c);
}

Test(config_config_abi_copy, of_no_version)
{
    static const size_t sizes[] = {0, 1, NJ_CONFIG_BYTES_MIN - 1, 1u << 20, SIZE_MAX};
    struct nj_server_config c, copy;

    nj_server_config_init(&c);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        c.size_bytes = sizes[i];
        cr_expect_eq(nj_config_convert_version(&copy, &c, why, sizeof why), -1, "%zu", sizes[i]);
        cr_expect(strstr(why, "nj_server_config_init()"), "%s", why);
    }
}
