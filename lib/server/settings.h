/* SPDX-License-Identifier: BSD-3-Clause */
/* A configuration that has been understood and checked. */
#ifndef NJ_SERVER_SETTINGS_H
#define NJ_SERVER_SETTINGS_H

#include <nightjar/server.h>

#include "base/types.h"
#include "http/route.h"
#include "wire/iface.h"

struct nj_settings {
    const struct nj_server_config *config;
    struct nj_iface iface; /* all but what the port says: MAC address and MTU */
    bool slaac;            /* --addr auto6 */
    struct nj_routes *routes;
};

/* 0, or -1 with what is wrong and what to do in `why`. Changes nothing in the world. */
int nj_settings_read(struct nj_settings *s, const struct nj_server_config *config, char *why,
                     size_t why_bytes);
void nj_settings_free(struct nj_settings *s);

#endif
