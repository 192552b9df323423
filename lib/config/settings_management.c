/* SPDX-License-Identifier: BSD-3-Clause */
/* The management listener: the path of its Unix socket, and its addresses. */
#include <string.h>

#include "base/set_error.h"
#include "base/socket_path.h"
#include "base/units.h"
#include "config/settings_validate.h"
#include "log/address_text.h"

/* The socket is made under another name first, which is longer by this. */
#define SUFFIX_MAX 4u
#define BYTES_MAX  (NJ_SOCKET_PATH_MAX - SUFFIX_MAX)

static bool is_loopback(const struct nj_addr *ip)
{
    static const struct nj_addr loopback6 = {.b = {[15] = 1}};

    return nj_addr_is_v4(ip) ? ip->b[12] == 127 : nj_addr_eq(ip, &loopback6);
}

bool nj_management_address_parse(const char *text, struct nj_management_address *out)
{
    const char *colon = strrchr(text, ':');
    uint64_t port;

    if (!colon || colon == text || !nj_parse_decimal(colon + 1, &port) || port == 0 ||
        port > UINT16_MAX)
        return false;
    const char *from = text;
    size_t n = (size_t)(colon - text);
    bool has_brackets = text[0] == '[' && colon[-1] == ']' && n > 2;
    if (has_brackets) {
        from++;
        n -= 2;
    }
    if (!nj_address_parse(from, n, &out->ip) || nj_addr_is_v4(&out->ip) == has_brackets)
        return false;
    out->port = (uint16_t)port;
    out->is_loopback = is_loopback(&out->ip);
    return true;
}

const char *nj_settings_management_socket(const struct nj_server_config *c)
{
    if (!c->management_socket)
        return c->management_default ? NJ_MANAGEMENT_SOCKET : NULL;
    return strcmp(c->management_socket, "none") == 0 ? NULL : c->management_socket;
}

/* bind(2) would take an empty path for a name of the abstract namespace. */
static int check_socket(const char *path, char *why, size_t n)
{
    if (path && (path[0] != '/' || strlen(path) > BYTES_MAX))
        return nj_set_error(
            why, n,
            "--management-socket %s: expected none, or a path of 2 to %u bytes that begins with /",
            path, BYTES_MAX);
    if (path && !strchr(path + strspn(path, "/"), '/'))
        return nj_set_error(why, n,
                            "--management-socket %s: it would be in /: name a folder that the "
                            "server's user may write to, e.g. " NJ_MANAGEMENT_SOCKET,
                            path);
    return 0;
}

static bool has_loopback(const struct nj_settings *s)
{
    for (uint32_t i = 0; i < s->n_management; i++)
        if (s->management[i].is_loopback)
            return true;
    return false;
}

int nj__settings_read_management(struct nj_settings *s, char *why, size_t n)
{
    const struct nj_server_config *c = s->config;
    const char *const *text = c->management_listen;

    if (check_socket(nj_settings_management_socket(c), why, n) != 0)
        return -1;
    for (uint32_t i = 0; i < NJ_SERVER_MANAGEMENT_MAX && text[i]; i++) {
        if (!nj_management_address_parse(text[i], &s->management[i]))
            return nj_set_error(why, n,
                                "--management-listen %s: expected an address and a port, e.g. "
                                "127.0.0.1:9180 or [::1]:9180",
                                text[i]);
        s->n_management = i + 1;
    }
    if ((c->management_token || c->management_read_token) && !has_loopback(s))
        return nj_set_error(why, n,
                            "--management-%stoken: tokens are for loopback addresses: add e.g. "
                            "--management-listen 127.0.0.1:9180",
                            c->management_token ? "" : "read-");
    return 0;
}
