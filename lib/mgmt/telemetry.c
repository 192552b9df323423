/* SPDX-License-Identifier: BSD-3-Clause */
/* The commands of DPDK's telemetry socket (rte_telemetry), which telemetry_*.c implement. */
#include "mgmt/telemetry.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include <rte_telemetry.h>

#include "base/assert.h"
#include "log/address_state_log.h"
#include "log/address_text.h"
#include "mgmt/telemetry_commands.h"

/* Callbacks of rte_telemetry have no context argument and run on its threads. The lock keeps the
 * server allocated while one runs. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static const struct nj_mgmt_view *attached;

/* Limit of rte_telemetry for the help text of a command. */
#define HELP_MAX 127u

/* Addresses as the first shard of their port sees them: it runs their duplicate address
 * detection. */
static void add_addresses(const struct nj_iface *iface, struct rte_tel_data *d)
{
    unsigned n = __atomic_load_n(&iface->n_addrs, __ATOMIC_ACQUIRE);

    for (unsigned i = 0; i < n; i++) {
        struct nj_iface_addr a;
        char line[NJ_ADDRESS_TEXT_BYTES + 32], text[NJ_ADDRESS_TEXT_BYTES];
        nj_iface_addr_read_published(&iface->addr[i], &a);
        snprintf(line, sizeof line, "%s/%u %s", nj_address_text(&a.ip, text), a.prefix_bits,
                 nj_address_state_text(&a));
        rte_tel_data_add_array_string(d, line);
    }
}

/* A list, since names in a dictionary must not contain dots or colons. */
static int addresses(const char *cmd, const char *params, struct rte_tel_data *d)
{
    rte_tel_data_start_array(d, RTE_TEL_STRING_VAL);
    pthread_mutex_lock(&lock);
    for (uint32_t k = 0; attached && k < attached->n_ports; k++)
        add_addresses(&attached->shard[attached->port[k].first]->cfg.iface, d);
    pthread_mutex_unlock(&lock);
    return 0;
}

static bool version(const struct nj_mgmt_view *v, const char *params, struct rte_tel_data *d)
{
    rte_tel_data_add_dict_string(d, "version", nj_version());
    return true;
}

/* Commands whose response is a dictionary. */
static const struct {
    const char *name, *help;
    nj__telemetry_command_fn *answer;
} commands[] = {
    {"/nightjar/stats", "Every counter of nightjar, summed over the shards. No parameters.",
     nj__telemetry_counters},
    {"/nightjar/shards",
     "What each shard does and holds. Parameter: the number of one shard, to see that one alone.",
     nj__telemetry_shards},
    {"/nightjar/port",
     "The devices: link, queues, offloads, and the packets that they dropped. Parameter: the "
     "number of one port.",
     nj__telemetry_port},
    {"/nightjar/stages",
     "Cycles of busy steps by stage: sums over the steps that were measured. Parameter: a shard.",
     nj__telemetry_stages},
    {"/nightjar/memory",
     "Memory of connections, by pool: bytes of one object, used, high-water mark, limit. "
     "Parameter: a shard.",
     nj__telemetry_memory},
    {"/nightjar/ewyk",
     "How handlers were run, by route. Parameter: the number of one route, or of a route and a "
     "shard: 0,1; or \"reset\".",
     nj__telemetry_handlers},
    {"/nightjar/workers",
     "The pool of workers: tasks that run and wait, and how its threads are assigned. No "
     "parameters.",
     nj__telemetry_workers},
    {"/nightjar/limits",
     "The limits in force. Parameters change them: class=NAME,KEY=VALUE,...; without class the "
     "server's.",
     nj__telemetry_limits},
    {"/nightjar/classes",
     "For each class: requests, bytes, waiting responses, and current rates. No parameters.",
     nj__telemetry_classes},
    {"/nightjar/clients",
     "Clients with most bytes. Parameters: how many, at most 64 (10); by=streams or "
     "by=connections: with most open.",
     nj__telemetry_clients},
    {"/nightjar/shaping",
     "Pacing of responses: how many wait, wakeups, and wakeups without effect. Parameter: a shard.",
     nj__telemetry_shaping},
    {"/nightjar/files", "The file cache: what it holds, hits and misses, and reads. No parameters.",
     nj__telemetry_files},
    {"/nightjar/abuse",
     "Protection that acted against clients: by reason, how often, and a client. No parameters.",
     nj__telemetry_abuse},
    {"/nightjar/refused",
     "Connections and requests refused before a transaction: by reason, how often, and a client. "
     "No parameters.",
     nj__telemetry_refused},
    {"/nightjar/latency",
     "Response times in microseconds: to the first byte, to the last byte, and time throttled. "
     "Parameter: a shard.",
     nj__telemetry_latency},
    {"/nightjar/version", "The version, with the commit. No parameters.", version},
};

static int answer(const char *cmd, const char *params, struct rte_tel_data *d)
{
    size_t i = 0;

    while (i < NJ_ARRAY_LEN(commands) && strcmp(commands[i].name, cmd) != 0)
        i++;
    if (i == NJ_ARRAY_LEN(commands))
        return -EINVAL;
    rte_tel_data_start_dict(d);
    pthread_mutex_lock(&lock);
    bool ok = !attached || commands[i].answer(attached, params, d);
    pthread_mutex_unlock(&lock);
    return ok ? 0 : -EINVAL;
}

void nj_telemetry_attach(const struct nj_mgmt_view *view)
{
    static bool is_registered; /* rte_telemetry cannot unregister */

    pthread_mutex_lock(&lock);
    bool first = !is_registered;
    is_registered = true;
    attached = view;
    pthread_mutex_unlock(&lock);
    if (!first)
        return;
    rte_telemetry_register_cmd("/nightjar/addresses", addresses,
                               "Addresses of the server, and their state. No parameters.");
    for (size_t i = 0; i < NJ_ARRAY_LEN(commands); i++) {
        NJ_ASSERT(strlen(commands[i].help) <= HELP_MAX);
        rte_telemetry_register_cmd(commands[i].name, answer, commands[i].help);
    }
}
