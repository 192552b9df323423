/* SPDX-License-Identifier: BSD-3-Clause */
#include "server/ready_lines.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "config/worker_placement.h"
#include "log/address_text.h"
#include "log/log.h"

#define URL_BYTES  (NJ_ADDRESS_TEXT_BYTES + 21u) /* " https://[...]:65535/" */
#define URLS_BYTES (NJ_LISTENERS_MAX * NJ_SERVER_ADDRS_MAX * URL_BYTES)

/* --print-placement prints the same text. */
static void log_advice(char *advice)
{
    static const char head[] = "nightjar: ";
    char *rest = NULL;

    for (char *line = strtok_r(advice, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
        nj_log(NJ_LEVEL_WARNING, "%s",
               line + (strncmp(line, head, strlen(head)) == 0 ? strlen(head) : 0));
}

/* Writes the ids of the lcores, such as " 2, 3". */
static void format_lcores(const struct nj_shards *shards, const struct nj_server_port *p,
                          char *text, size_t n)
{
    size_t at = 0;

    for (uint32_t i = 0; i < p->n_shards && at < n; i++)
        at += (size_t)snprintf(text + at, n - at, "%s %u", i ? "," : "",
                               shards->lcore[p->first + i].id);
}

/* Writes a space and the URL. Returns the length. */
static size_t format_url(const char *scheme, const struct nj_addr *ip, uint16_t port, char *out,
                         size_t n)
{
    char text[NJ_ADDRESS_TEXT_BYTES];
    bool v4 = nj_addr_is_v4(ip);

    return (size_t)snprintf(out, n, " %s://%s%s%s:%u/", scheme, v4 ? "" : "[",
                            nj_address_text(ip, text), v4 ? "" : "]", port);
}

/* Logs the port. */
static void log_port(const struct nj_server_port *p, const struct nj_shards *shards, bool is_only)
{
    const struct nj_dpdk_port *d = &p->dev;
    char mac[RTE_ETHER_ADDR_FMT_SIZE], lcores[NJ_SHARDS_MAX * 6u] = ""; /* ", 1023" */

    if (!is_only)
        format_lcores(shards, p, lcores, sizeof lcores);
    rte_ether_format_addr(mac, sizeof mac, &d->mac);
    nj_log(NJ_LEVEL_INFO, "%s (%s) %s, mtu %u, %u lcore%s%s: %s; %s", d->name, d->driver, mac,
           d->mtu, p->n_shards, p->n_shards == 1 ? "" : "s", lcores, d->spread, d->offloads);
}

/* Appends the port's addresses to the `at` bytes of `urls`. Returns the length. */
static size_t format_urls(const struct nj_server_port *p, const struct nj_listeners *listeners,
                          size_t at, char *urls, size_t n_urls)
{
    for (unsigned i = 0; i < p->settings->iface.n_addrs; i++) {
        const struct nj_addr *ip = &p->settings->iface.addr[i].ip;
        for (uint32_t k = 0; k < listeners->n && at < n_urls; k++) {
            const struct nj_listener *l = &listeners->at[k];
            if (nj_listener_find(listeners, ip, l->port) == l)
                at += format_url(l->is_tls ? "https" : "http", ip, l->port, urls + at, n_urls - at);
        }
    }
    return at;
}

void nj__ready_format(const struct nj_ports *ports, const struct nj_settings *settings, char *text,
                      size_t n)
{
    const struct nj_server_config *config = settings->config;
    char urls[URLS_BYTES] = "", routes[64] = "";
    size_t at = 0;

    for (uint32_t k = 0; k < ports->n; k++)
        at = format_urls(&ports->port[k], &settings->listeners, at, urls, sizeof urls);
    if (config->n_routes > 0)
        snprintf(routes, sizeof routes, "%s%u route%s", config->root ? " and " : " of ",
                 config->n_routes, config->n_routes == 1 ? "" : "s");
    snprintf(text, n, "ready:%s serves %s%s", urls, config->root ? config->root : "handlers",
             routes);
}

void nj__ready_log_advice(const struct nj_ports *ports, const struct nj_placement *place,
                          const cpu_set_t *cpus)
{
    int node = nj__ports_common_numa_node(ports);
    char advice[2048];

    if (ports->n > 1 && node < 0) /* lcores have to be on several nodes */
        return;
    nj_placement_format_advice(place, node, cpus, advice, sizeof advice);
    log_advice(advice);
}

void nj__ready_log(const struct nj_ports *ports, const struct nj_shards *shards,
                   const struct nj_settings *settings)
{
    char text[URLS_BYTES + PATH_MAX];

    for (uint32_t k = 0; k < ports->n; k++)
        log_port(&ports->port[k], shards, ports->n == 1);
    nj__ready_format(ports, settings, text, sizeof text);
    nj_log(NJ_LEVEL_INFO, "%s; version %s", text, nj_version());
}
