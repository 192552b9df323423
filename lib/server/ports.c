/* SPDX-License-Identifier: BSD-3-Clause */
/* Assigns lcores to ports, opens the devices, creates the rings between shards, and watches them
 * later. */
#include "server/ports.h"

#include <string.h>

#include <rte_errno.h>

#include "base/set_error.h"
#include "dpdk/rss_key.h"
#include "log/log.h"
#include "telem/counters_packet.h"
#include "topo/port_lcores.h"

enum nj_idle nj__idle_mode(const struct nj_server_config *config)
{
    return config->busy_poll ? NJ_IDLE_SPIN : config->idle;
}

struct nj_server_port *nj__ports_find_by_shard(struct nj_ports *ports, uint32_t shard)
{
    struct nj_server_port *p = ports->port;

    while (shard >= p->first + p->n_shards)
        p++;
    return p;
}

int nj__ports_common_numa_node(const struct nj_ports *ports)
{
    for (uint32_t k = 1; k < ports->n; k++)
        if (ports->port[k].dev.node != ports->port[0].dev.node)
            return -1;
    return ports->port[0].dev.node;
}

/* --- open and close --------------------------------------------------------------------------- */

/* Sorts the lcores by port, in the order of the ports. */
static void group_lcores_by_port(struct nj_ports *ports, struct nj_shards *shards,
                                 const uint8_t *port_of)
{
    struct nj_lcore was[NJ_SHARDS_MAX];
    uint32_t n = 0;

    memcpy(was, shards->lcore, sizeof was);
    for (uint32_t k = 0; k < ports->n; k++) {
        ports->port[k].first = n;
        for (uint32_t i = 0; i < shards->n; i++)
            if (port_of[i] == k)
                memcpy(&shards->lcore[n++], &was[i], sizeof was[i]);
        ports->port[k].n_shards = n - ports->port[k].first;
    }
}

/* Chooses the device of each port, and the lcores that poll it. */
static int assign_ports(struct nj_ports *ports, const struct nj_settings *settings,
                        struct nj_shards *shards, char *why, size_t why_bytes)
{
    struct nj_port_request request[NJ_SERVER_PORTS_MAX];
    struct nj_lcore_node at[NJ_SHARDS_MAX];
    uint8_t port_of[NJ_SHARDS_MAX];

    for (uint32_t k = 0; k < ports->n; k++) {
        struct nj_server_port *p = &ports->port[k];
        p->settings = &settings->port[k];
        request[k].lcores = p->settings->lcores;
        if (nj_dpdk_port_choose(p->settings->id, &p->dev.id, &request[k].node, why, why_bytes) != 0)
            return -1;
        request[k].id = p->dev.id;
    }
    for (uint32_t i = 0; i < shards->n; i++)
        at[i] = (struct nj_lcore_node){shards->lcore[i].id, shards->lcore[i].node};
    if (nj_port_lcores_assign(at, shards->n, request, ports->n, port_of, why, why_bytes) != 0)
        return -1;
    group_lcores_by_port(ports, shards, port_of);
    return 0;
}

/* Warns about requested features that the device lacks. */
static void warn_unsupported(const struct nj_server_port *p, enum nj_idle idle)
{
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

static int open_port(struct nj_server_port *p, const struct nj_server_config *config,
                     const struct nj_presets *presets, const struct nj_rss_key *key, bool is_shared,
                     char *why, size_t why_bytes)
{
    const struct nj_dpdk_port_config want = {
        .id = p->dev.id,
        .n_shards = p->n_shards,
        .offload = !config->no_offload,
        .mtu = config->mtu,
        .rx_ring = config->rx_ring,
        .tx_ring = config->tx_ring,
        .rx_interrupts = nj__idle_mode(config) == NJ_IDLE_INTERRUPT,
    };

    if (nj_dpdk_port_open(&p->dev, &want, key, why, why_bytes) != 0)
        return -1;
    nj_port_watch_init(&p->watch, p->dev.name,
                       p->dev.n_txq * p->dev.n_txd + p->n_shards * NJ_SHARD_RING_SIZE);
    nj_dpdk_port_read_stats(&p->dev, &p->last_sample);
    if (is_shared) /* nobody polls them yet: the other process gets all packets */
        nj_dpdk_port_detach_queues(&p->dev);
    nj_presets_warn_port_diff(presets, &p->dev, p->n_shards, want.offload);
    warn_unsupported(p, nj__idle_mode(config));
    if (nj_shard_rings_open(&p->rings, &p->dev, p->n_shards))
        return 0;
    return nj_set_error(why, why_bytes, "not enough memory for the rings between shards: %s",
                        rte_strerror(rte_errno));
}

int nj__ports_open(struct nj_ports *ports, const struct nj_settings *settings,
                   const struct nj_presets *presets, struct nj_shards *shards, bool is_shared,
                   bool is_reprobed, char *why, size_t why_bytes)
{
    const struct nj_server_config *config = settings->config;
    struct nj_rss_key key = settings->rss_key;
    uint32_t n_open = 0;

    ports->n = settings->n_ports;
    pthread_mutex_init(&ports->stats_lock, NULL);
    if (nj__idle_mode(config) == NJ_IDLE_PAUSE && !nj_idle_has_power_pause())
        nj_log(NJ_LEVEL_WARNING, "--idle pause: this CPU has no low-power wait: lcores spin");
    int rc = settings->has_rss_key || nj_rss_key_generate(&key)
                 ? nj_presets_check_ports_exist(presets, why, why_bytes)
                 : nj_set_error(why, why_bytes, "cannot get random numbers from the system");
    if (rc == 0)
        rc = assign_ports(ports, settings, shards, why, why_bytes);
    for (; rc == 0 && n_open < ports->n; n_open++)
        rc = open_port(&ports->port[n_open], config, presets, &key, is_shared, why, why_bytes);
    explicit_bzero(&key, sizeof key);
    ports->n = n_open; /* ports after a failed one were never opened */
    if (rc != 0)
        nj__ports_close(ports, is_shared, is_reprobed);
    return rc;
}

void nj__ports_close(struct nj_ports *ports, bool is_shared, bool is_reprobed)
{
    struct rte_device *device[RTE_MAX_ETHPORTS];
    uint32_t n_devices = 0;
    char why[256];

    for (uint32_t k = 0; k < ports->n; k++)
        n_devices = nj_dpdk_port_append_devices(&ports->port[k].dev, device, n_devices);
    for (; ports->n > 0; ports->n--) {
        struct nj_server_port *p = &ports->port[ports->n - 1];
        nj_shard_rings_close(&p->rings);
        if (is_shared) /* the driver would set the interface down for the other process, too */
            nj_dpdk_port_detach_queues(&p->dev);
        else
            nj_dpdk_port_close(&p->dev);
    }
    pthread_mutex_destroy(&ports->stats_lock);
    if (is_reprobed && !is_shared &&
        nj_dpdk_devices_reprobe(device, n_devices, why, sizeof why) != 0)
        nj_log(NJ_LEVEL_WARNING, "%s: another server of this process cannot use it", why);
}

/* --- while the server runs -------------------------------------------------------------------- */

static void watch_port(struct nj_server_port *p, pthread_mutex_t *stats_lock,
                       const struct nj_shards *shards, nj_ns now)
{
    struct nj_port_stats sample = {.tx_given = 0};
    char line[NJ_PORT_LINE_BYTES];
    enum nj_log level;

    for (uint32_t i = p->first; i < p->first + p->n_shards; i++)
        sample.tx_given += nj_counter_read(&shards->shard[i]->counters, NJ_C_tx_packets);
    nj_dpdk_port_read_stats(&p->dev, &sample);
    nj_port_watch_update(&p->watch, &sample, now);
    pthread_mutex_lock(stats_lock);
    p->last_sample = sample;
    pthread_mutex_unlock(stats_lock);
    while (nj_port_watch_next_line(&p->watch, now, &level, line))
        nj_log(level, "%s", line);
}

void nj__ports_watch(struct nj_ports *ports, const struct nj_shards *shards, nj_ns now)
{
    if (now - ports->sampled_at < NJ_PORT_WATCH_PERIOD)
        return;
    ports->sampled_at = now;
    for (uint32_t k = 0; k < ports->n; k++)
        watch_port(&ports->port[k], &ports->stats_lock, shards, now);
}

static const struct nj_iface *iface_of(const struct nj_server_port *p,
                                       const struct nj_shards *shards)
{
    return &shards->shard[p->first]->cfg.iface;
}

void nj__ports_log_addresses(struct nj_ports *ports, const struct nj_shards *shards)
{
    for (uint32_t k = 0; k < ports->n; k++)
        nj_address_log_changes(&ports->port[k].addresses, iface_of(&ports->port[k], shards));
}

bool nj__ports_have_tentative_addresses(const struct nj_ports *ports,
                                        const struct nj_shards *shards)
{
    for (uint32_t k = 0; k < ports->n; k++) {
        const struct nj_iface *iface = iface_of(&ports->port[k], shards);
        unsigned n = __atomic_load_n(&iface->n_addrs, __ATOMIC_ACQUIRE);
        for (unsigned i = 0; i < n; i++) {
            struct nj_iface_addr a;
            nj_iface_addr_read_published(&iface->addr[i], &a);
            if (a.state == NJ_ADDR_TENTATIVE)
                return true;
        }
    }
    return false;
}
