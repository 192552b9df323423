/* SPDX-License-Identifier: BSD-3-Clause */
#include "target.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "base/set_error.h"

/* An address of either family; IPv6 in brackets (RFC 3986 3.2.2). */
static bool read_address(const char *text, size_t n, struct nj_addr *out)
{
    char buf[INET6_ADDRSTRLEN];
    struct in_addr in;
    bool six = n > 2 && text[0] == '[' && text[n - 1] == ']';

    n -= six ? 2 : 0;
    if (n >= sizeof buf)
        return false;
    memcpy(buf, text + six, n);
    buf[n] = '\0';
    if (six)
        return inet_pton(AF_INET6, buf, out->b) == 1;
    if (inet_pton(AF_INET, buf, &in) != 1)
        return false;
    *out = nj_addr_from_v4(in.s_addr);
    return true;
}

static bool read_name(struct load_options *o, const char *text, size_t n)
{
    static const char may_be[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._";

    if (n == 0 || n >= sizeof o->name || strspn(text, may_be) < n)
        return false;
    memcpy(o->name, text, n);
    o->name[n] = '\0';
    o->server_name = o->name;
    return true;
}

int load_target_read(struct load_options *o, const char *url, const char **path, char *why,
                     size_t n)
{
    const char *host = strstr(url, "://"), *end, *colon;

    o->plan.is_https = strncmp(url, "https://", 8) == 0;
    if (!o->plan.is_https && strncmp(url, "http://", 7) != 0)
        return nj_set_error(why, n, "%s: expected http://HOST[:PORT]/PATH, or https://", url);
    host += 3;
    uint64_t port = o->plan.is_https ? 443 : 80;
    *path = strchr(host, '/');
    end = *path ? *path : host + strlen(host);
    *path = *path ? *path : "/";
    colon = memrchr(host, ':', (size_t)(end - host));
    if (colon && memchr(colon, ']', (size_t)(end - colon)))
        colon = NULL; /* of an IPv6 address */
    size_t n_host = (size_t)((colon ? colon : end) - host);
    if (read_address(host, n_host, &o->to[0]))
        o->n_to = 1;
    else if (!read_name(o, host, n_host))
        return nj_set_error(why, n,
                            "%s: expected a name or an address, such as 198.18.0.2 or "
                            "[2001:db8::2]",
                            url);
    if (colon) {
        char *rest;
        port = strtoul(colon + 1, &rest, 10);
        if (colon[1] < '0' || colon[1] > '9' || rest != end || port == 0 || port > 65535)
            return nj_set_error(why, n, "%s: expected a port from 1 to 65535", url);
    }
    o->port = (uint16_t)port;
    snprintf(o->authority, sizeof o->authority, "%.*s", (int)(end - host), host);
    return 0;
}

int load_target_look_up(struct load_options *o, char *why, size_t n)
{
    const struct addrinfo wanted = {.ai_socktype = SOCK_STREAM};
    struct addrinfo *found;

    if (!o->server_name)
        return 0;
    int rc = getaddrinfo(o->name, NULL, &wanted, &found);
    if (rc != 0)
        return nj_set_error(why, n, "%s: %s", o->name,
                            rc == EAI_SYSTEM ? strerror(errno) : gai_strerror(rc));
    for (const struct addrinfo *a = found; a && o->n_to < LOAD_TO_MAX; a = a->ai_next) {
        if (a->ai_family == AF_INET)
            o->to[o->n_to++] =
                nj_addr_from_v4(((const struct sockaddr_in *)a->ai_addr)->sin_addr.s_addr);
        if (a->ai_family == AF_INET6)
            memcpy(o->to[o->n_to++].b, &((const struct sockaddr_in6 *)a->ai_addr)->sin6_addr, 16);
    }
    freeaddrinfo(found);
    return o->n_to > 0 ? 0 : nj_set_error(why, n, "%s: no address", o->name);
}
