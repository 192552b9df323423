/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The management listener of a server. Its TCP sockets are bound before privileges are given up,
 * its Unix socket is made after that, as the user that owns it, and both are used when this process
 * takes new connections. It ends after the supervisor, so that it answers while connections are
 * drained. The main thread, unless a function says something else.
 */
#pragma once

#include "config/settings_validate.h"
#include "mgmt/listener.h"
#include "privilege/privileges.h"
#include "upgrade/upgrade.h"

struct nj_management {
    struct nj_mgmt_sockets sockets;
    const struct nj_server_config *config; /* of the start */
    struct nj_mgmt_tokens tokens;          /* of the start */
    struct nj_mgmt_listener *listener;     /* NULL: none */
    _Atomic nj_ns ready_stall;
};

/* These return 0, or -1 with the reason in `why`. nj__management_close() undoes the first two, also
 * after an error. */
int nj__management_bind(struct nj_management *m, const struct nj_settings *settings,
                        const struct nj_privileges *privileges, const struct nj_upgrade *upgrade,
                        char *why, size_t why_bytes);
/* `user`: the name of the server's user, or "". */
int nj__management_prepare(struct nj_management *m, const char *user, char *why, size_t why_bytes);
int nj__management_start(struct nj_management *m, const struct nj_mgmt_view *view,
                         const cpu_set_t *cpus, char *why, size_t why_bytes);
/* End the listener, and close its sockets. Twice is once. */
void nj__management_stop(struct nj_management *m);
void nj__management_close(struct nj_management *m);

/* Use these tokens, and what the configuration says. Any thread but an lcore. */
void nj__management_configure(struct nj_management *m, const struct nj_server_config *config,
                              const struct nj_mgmt_tokens *tokens);
