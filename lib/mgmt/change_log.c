/* SPDX-License-Identifier: BSD-3-Clause */
#include "mgmt/change_log.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "log/log.h"

/* "user 1000 (process 77)", or "127.0.0.1 with the token". */
static void describe_sender(struct MHD_Connection *c, bool is_unix, char *who, size_t n)
{
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(
        c, is_unix ? MHD_CONNECTION_INFO_CONNECTION_FD : MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    struct ucred user;
    socklen_t n_user = sizeof user;
    char ip[INET6_ADDRSTRLEN] = "?";

    if (is_unix && info &&
        getsockopt(info->connect_fd, SOL_SOCKET, SO_PEERCRED, &user, &n_user) == 0) {
        snprintf(who, n, "user %ld (process %ld)", (long)user.uid, (long)user.pid);
        return;
    }
    const struct sockaddr *from = !is_unix && info ? info->client_addr : NULL;
    if (from && from->sa_family == AF_INET)
        inet_ntop(AF_INET, &((const struct sockaddr_in *)(const void *)from)->sin_addr, ip,
                  sizeof ip);
    else if (from && from->sa_family == AF_INET6)
        inet_ntop(AF_INET6, &((const struct sockaddr_in6 *)(const void *)from)->sin6_addr, ip,
                  sizeof ip);
    snprintf(who, n, "%s with the token", ip);
}

void nj__mgmt_log_change(struct MHD_Connection *c, bool is_unix, const char *method,
                         const char *path, const char *what, unsigned status)
{
    char who[80], shown[256];

    describe_sender(c, is_unix, who, sizeof who);
    snprintf(shown, sizeof shown, "%s", what);
    for (char *p = shown; *p; p++)
        if (*p < ' ' || *p > '~')
            *p = '?';
    nj_log(NJ_LEVEL_INFO, "management: %s %s%s%s from %s: %u", method, path, shown[0] ? " " : "",
           shown, who, status);
}
