/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nightjar doctor: interfaces with kernel routes, and their lower interfaces (of bonds, bridges,
 * VLANs). Reads only the main tables of this network namespace.
 */
#include <arpa/inet.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "doctor/doctor.h"

/* linux/route.h and linux/ipv6_route.h conflict with net/if.h */
#define ROUTE_UP     0x1u
#define ROUTE_REJECT 0x200u
#define ROUTE_LOCAL  0x80000000u

#define IFS_MAX 4096u

struct nj_route_if *nj__route_of(const struct nj_doctor *d, const char *interface)
{
    for (uint32_t i = 0; i < d->n_routes; i++)
        if (strcmp(d->route[i].name, interface) == 0)
            return &d->route[i];
    return NULL;
}

/* Returns whether anything changed. */
static bool add_interface(struct nj_doctor *d, const char *name, const char *top, bool is_default)
{
    struct nj_route_if *more, *known = nj__route_of(d, name);

    if (known && (known->is_default || !is_default))
        return false;
    if (!known) {
        if (d->n_routes == IFS_MAX ||
            !(more = realloc(d->route, (d->n_routes + 1) * sizeof *more))) {
            d->no_routes = true;
            return false;
        }
        d->route = more;
        known = &more[d->n_routes++];
        known->has_device = nj__host_exists(d, "/sys/class/net/%s/device", name);
    }
    known->is_default = is_default;
    snprintf(known->name, sizeof known->name, "%s", name);
    snprintf(known->top, sizeof known->top, "%s", top);
    return true;
}

/* "*" marks routes without an interface. */
static bool is_outside(const char *name)
{
    return strcmp(name, "lo") != 0 && strcmp(name, "*") != 0;
}

/* Parses a line of /proc/net/route: hexadecimal, network byte order. The halves 0.0.0.0/1 and
 * 128.0.0.0/1 count as a default route. */
static void parse_route4(void *ctx, const char *path, char *line)
{
    char name[64];
    unsigned to, gateway, flags, mask;

    if (sscanf(line, "%63s %x %x %x %*s %*s %*s %x", name, &to, &gateway, &flags, &mask) != 5)
        return; /* the header */
    if (is_outside(name) && (flags & ROUTE_UP) && !(flags & ROUTE_REJECT))
        add_interface(ctx, name, name, (ntohl(mask) & 0x7fffffff) == 0);
}

/* ::/0, its halves, or 2000::/3 (all global addresses). */
static bool is_default6(const char *to, unsigned prefix)
{
    return prefix <= 1 || (prefix == 3 && *to == '2');
}

static void parse_route6(void *ctx, const char *path, char *line)
{
    char name[64], to[33];
    unsigned prefix, flags;

    if (sscanf(line, "%32s %x %*s %*s %*s %*s %*s %*s %x %63s", to, &prefix, &flags, name) != 4)
        return;
    bool of_link = strncmp(to, "fe80", 4) == 0 || strncmp(to, "ff", 2) == 0;
    if (is_outside(name) && !of_link && (flags & ROUTE_UP) &&
        !(flags & (ROUTE_REJECT | ROUTE_LOCAL)))
        add_interface(ctx, name, name, is_default6(to, prefix));
}

/* Adds the lower interfaces. Returns whether anything changed. */
static bool add_lower_interfaces(struct nj_doctor *d, struct nj_route_if upper)
{
    struct dirent **names;
    uint32_t n = nj__host_names(d, &names, "/sys/class/net/%s", upper.name);
    bool news = false;

    for (uint32_t i = 0; i < n; i++)
        if (strncmp(names[i]->d_name, "lower_", 6) == 0)
            news |= add_interface(d, names[i]->d_name + 6, upper.top, upper.is_default);
    nj__host_names_free(names, n);
    return news;
}

void nj__facts_routes(struct nj_doctor *d)
{
    bool news = true;

    d->no_routes = !nj__host_lines(d, parse_route4, d, "/proc/net/route");
    nj__host_lines(d, parse_route6, d,
                   "/proc/net/ipv6_route"); /* absent in a kernel without IPv6 */
    while (news) {
        news = false;
        for (uint32_t i = 0; i < d->n_routes; i++)
            news |= add_lower_interfaces(d, d->route[i]);
    }
}

/* Inherits has_device from lower interfaces. Returns whether it changed. */
static bool inherit_has_device(const struct nj_doctor *d, struct nj_route_if *upper)
{
    struct dirent **names;
    uint32_t n = nj__host_names(d, &names, "/sys/class/net/%s", upper->name);
    bool has = false;

    for (uint32_t i = 0; i < n; i++) {
        const struct nj_route_if *r = strncmp(names[i]->d_name, "lower_", 6) == 0
                                          ? nj__route_of(d, names[i]->d_name + 6)
                                          : NULL;
        has |= r && r->has_device;
    }
    nj__host_names_free(names, n);
    upper->has_device = has;
    return has;
}

const struct nj_route_if *nj__route_without_nic(const struct nj_doctor *d)
{
    bool news = true;

    while (news) {
        news = false;
        for (uint32_t i = 0; i < d->n_routes; i++)
            news |= !d->route[i].has_device && inherit_has_device(d, &d->route[i]);
    }
    for (uint32_t i = 0; i < d->n_routes; i++) {
        const struct nj_route_if *r = &d->route[i];
        if (r->is_default && !r->has_device && strcmp(r->name, r->top) == 0)
            return r;
    }
    return NULL;
}
