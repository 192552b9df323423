/* SPDX-License-Identifier: BSD-3-Clause */
/* nightjar --check: everything is read, nothing is started. */
#include <stdio.h>

#include "server/settings.h"

int nj_server_check(const struct nj_server_config *config)
{
    struct nj_settings settings;
    char why[512];

    if (nj_settings_check(&settings, config, why, sizeof why) != 0) {
        fprintf(stderr, "nightjar: %s\n", why);
        return 1;
    }
    nj_settings_free(&settings);
    return 0;
}
