/* SPDX-License-Identifier: BSD-3-Clause */
/* Bring-up of the ports: assigns lcores, opens the devices, and creates the rings between shards.
 */
#include <stdio.h>
#include <string.h>

#include <rte_errno.h>

#include "config/port_lcores.h"
#include "config/rss_key.h"
#include "log/log.h"
#include "server/server_internal.h"

enum nj_idle nj__server_idle_mode(const struct nj_server_config *config)
{
    return config->busy_poll ? NJ_IDLE_SPIN : config->idle;
}

const struct nj_server_port *nj__server_port_of_shard(const struct nj_server *s, uint32_t shard)
{
    const struct nj_server_port *p = s->port;

    while (shard >= p->first + p->n_shards)
        p++;
    return p;
}

int nj__server_ports_common_numa_node(const struct nj_server *s)
{
    for (uint32_t k = 1; k < s->n_ports; k++)
        if (s->port[k].dev.node != s->port[0].dev.node)
            return -1;
    return s->port[0].dev.node;
}

/* Sorts the lcores by port, in the order of the ports. */
static void group_lcores_by_port(struct nj_server *s, const uint8_t *port_of)
{
    struct nj_lcore was[NJ_SHARDS_MAX];
    uint32_t n = 0;

    memcpy(was, s->lcore, sizeof was);
    for (uint32_t k = 0; k < s->n_ports; k++) {
        s->port[k].first = n;
        for (uint32_t i = 0; i < s->n_shards; i++)
            if (port_of[i] == k)
                memcpy(&s->lcore[n++], &was[i], sizeof was[i]);
        s->port[k].n_shards = n - s->port[k].first;
    }
}

/* Chooses the device of each port, and the lcores that poll it. */
static bool assign_ports(struct nj_server *s)
{
    struct nj_port_request wish[NJ_SERVER_PORTS_MAX];
    struct nj_lcore_node at[NJ_SHARDS_MAX];
    uint8_t port_of[NJ_SHARDS_MAX];

    if (nj_presets_check_ports_exist(&s->presets, s->why, sizeof s->why) != 0)
        return false;
    for (uint32_t k = 0; k < s->n_ports; k++) {
        struct nj_server_port *p = &s->port[k];
        p->settings = &s->settings.port[k];
        wish[k].lcores = p->settings->lcores;
        if (nj_dpdk_port_choose(p->settings->id, &p->dev.id, &wish[k].node, s->why,
                                sizeof s->why) != 0)
            return false;
        wish[k].id = p->dev.id;
    }
    for (uint32_t i = 0; i < s->n_shards; i++)
        at[i] = (struct nj_lcore_node){s->lcore[i].id, s->lcore[i].node};
    if (nj_port_lcores_assign(at, s->n_shards, wish, s->n_ports, port_of, s->why, sizeof s->why) !=
        0)
        return false;
    group_lcores_by_port(s, port_of);
    return true;
}

/* Warns about requested features that the device lacks. */
static void warn_unsupported(const struct nj_server *s, const struct nj_server_port *p)
{
    enum nj_idle idle = nj__server_idle_mode(s->settings.config);

    if (idle == NJ_IDLE_INTERRUPT && p->dev.rx_notify == NJ_RX_POLLED)
        nj_log(NJ_LEVEL_WARNING,
               "--idle interrupt: %s (%s) has no receive interrupts: lcores sleep", p->dev.name,
               p->dev.driver);
    if (p->settings->iface.ip6 && !nj_dpdk_port_allmulticast(&p->dev))
        nj_log(NJ_LEVEL_WARNING,
               "%s does not receive multicast: IPv6 hosts may not find this server; add it to "
               "their neighbour tables",
               p->dev.name);
}

static bool open_port(struct nj_server *s, struct nj_server_port *p, const struct nj_rss_key *key)
{
    const struct nj_server_config *config = s->settings.config;
    const struct nj_dpdk_port_config want = {
        .id = p->dev.id,
        .n_shards = p->n_shards,
        .offload = !config->no_offload,
        .mtu = config->mtu,
        .rx_ring = config->rx_ring,
        .tx_ring = config->tx_ring,
        .rx_interrupts = nj__server_idle_mode(config) == NJ_IDLE_INTERRUPT,
    };

    if (nj_dpdk_port_open(&p->dev, &want, key, s->why, sizeof s->why) != 0)
        return false;
    nj_port_watch_init(&p->watch, p->dev.name,
                       p->dev.n_txq * p->dev.n_txd + p->n_shards * NJ_SHARD_RING_SIZE);
    nj_dpdk_port_read_stats(&p->dev, &p->last_sample);
    /* Nobody polls them yet: the other process gets all packets. */
    if (nj_upgrade_shares_ports(&s->upgrade))
        nj_dpdk_port_detach_queues(&p->dev);
    nj_presets_warn_port_diff(&s->presets, &p->dev, p->n_shards, want.offload);
    warn_unsupported(s, p);
    if (nj_shard_rings_open(&p->fabric, &p->dev, p->n_shards))
        return true;
    snprintf(s->why, sizeof s->why, "not enough memory for the rings between shards: %s",
             rte_strerror(rte_errno));
    return false;
}

bool nj__server_open_ports(struct nj_server *s)
{
    struct nj_rss_key key = s->settings.rss_key;
    uint32_t n_open = 0;

    s->n_ports = s->settings.n_ports;
    pthread_mutex_init(&s->port_lock, NULL);
    if (!s->settings.has_rss_key && !nj_rss_key_generate(&key)) {
        snprintf(s->why, sizeof s->why, "cannot get random numbers from the system");
        return false;
    }
    if (nj__server_idle_mode(s->settings.config) == NJ_IDLE_PAUSE && !nj_idle_has_power_pause())
        nj_log(NJ_LEVEL_WARNING, "--idle pause: this CPU has no low-power wait: lcores spin");
    bool ok = assign_ports(s);
    for (; ok && n_open < s->n_ports; n_open++)
        ok = open_port(s, &s->port[n_open], &key);
    explicit_bzero(&key, sizeof key);
    s->n_ports = n_open; /* ports after a failed one were never opened */
    if (!ok)
        nj__server_close_ports(s);
    return ok;
}

void nj__server_close_ports(struct nj_server *s)
{
    struct rte_device *device[RTE_MAX_ETHPORTS];
    uint32_t n_devices = 0;
    char why[256];
    bool is_shared = nj_upgrade_shares_ports(&s->upgrade);

    for (uint32_t k = 0; k < s->n_ports; k++)
        n_devices = nj_dpdk_port_append_devices(&s->port[k].dev, device, n_devices);
    for (; s->n_ports > 0; s->n_ports--) {
        struct nj_server_port *p = &s->port[s->n_ports - 1];
        nj_shard_rings_close(&p->fabric);
        if (is_shared) /* the driver would set the interface down for the other process, too */
            nj_dpdk_port_detach_queues(&p->dev);
        else
            nj_dpdk_port_close(&p->dev);
    }
    pthread_mutex_destroy(&s->port_lock);
    if (!s->is_program && !is_shared &&
        nj_dpdk_devices_reprobe(device, n_devices, why, sizeof why) != 0)
        nj_log(NJ_LEVEL_WARNING, "%s: another server of this process cannot use it", why);
}
