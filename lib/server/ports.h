/* SPDX-License-Identifier: BSD-3-Clause */
/* The ports of a server, each with its lcores and the rings between their shards. */
#pragma once

#include <pthread.h>

#include "config/eal_preset.h"
#include "config/settings_validate.h"
#include "dpdk/port.h"
#include "dpdk/shard_rings.h"
#include "log/address_state_log.h"
#include "log/port_health_log.h"
#include "server/shards.h"

/* A port and its shards: n_shards of the server's shards, from `first` on. */
struct nj_server_port {
    const struct nj_settings_port *settings;
    struct nj_dpdk_port dev;
    struct nj_shard_rings rings;
    uint32_t first, n_shards;
    struct nj_port_watch watch;         /* supervisor only */
    struct nj_address_logged addresses; /* supervisor only */
    struct nj_port_stats last_sample;   /* under stats_lock */
};

struct nj_ports {
    uint32_t n;
    struct nj_server_port port[NJ_SERVER_PORTS_MAX];
    pthread_mutex_t stats_lock; /* of each last_sample */
    nj_ns sampled_at;           /* supervisor only */
};

/* Open the ports of the settings, sort the lcores by port and open the rings between their shards.
 * `is_shared`: another process uses them; then they receive nothing until their queues are
 * attached. On failure those that were opened are closed, as by nj__ports_close(). Returns 0, or -1
 * with the reason. Main thread. */
int nj__ports_open(struct nj_ports *ports, const struct nj_settings *settings,
                   const struct nj_presets *presets, struct nj_shards *shards, bool is_shared,
                   bool is_reprobed, char *why, size_t why_bytes);
/* `is_reprobed`: another server of this process can use the devices later. */
void nj__ports_close(struct nj_ports *ports, bool is_shared, bool is_reprobed);

/* The port of a shard, by its number among all. */
struct nj_server_port *nj__ports_find_by_shard(struct nj_ports *ports, uint32_t shard);
/* The common NUMA node of all ports; -1 if they have several or none. */
int nj__ports_common_numa_node(const struct nj_ports *ports);
/* The idle mode of lcores. */
enum nj_idle nj__idle_mode(const struct nj_server_config *config);

/* Sample each port once per NJ_PORT_WATCH_PERIOD, and log what has changed. The supervisor. */
void nj__ports_watch(struct nj_ports *ports, const struct nj_shards *shards, nj_ns now);
/* Log changes of addresses, as the first shard of each port sees them. The supervisor. */
void nj__ports_log_addresses(struct nj_ports *ports, const struct nj_shards *shards);
/* Is an address of the configuration tentative? Any thread. */
bool nj__ports_have_tentative_addresses(const struct nj_ports *ports,
                                        const struct nj_shards *shards);
