/* SPDX-License-Identifier: BSD-3-Clause */
/* The steps of bring-up that take over from a running server, and what the server does in an
 * upgrade. */
#include "log/log.h"
#include "mgmt/policy_handover.h"
#include "server/server_internal.h"
#include "telem/counters_conn.h"
#include "threads/os_clock.h"

static void set_phase(void *server, enum nj_run_phase phase)
{
    nj__shards_set_phase(&((struct nj_server *)server)->shards, phase);
}

static void on_yield(void *server, bool yields)
{
    struct nj_server *s = server;
    uint64_t open = nj_mgmt_sum_counter(&s->view, NJ_C_connections);

    nj__service_yields(&s->service, yields, open);
    if (s->management.listener)
        nj_mgmt_listener_yield(s->management.listener, yields);
    if (!yields)
        return;
    nj_log(NJ_LEVEL_INFO, "upgrade: another process takes new connections: %lu connection%s open",
           (unsigned long)open, open == 1 ? "" : "s");
}

static int write_changes(void *server)
{
    struct nj_server *s = server;

    return nj_mgmt_write_changes(s->policy.policies, nj_os_clock_gettime_ns(CLOCK_MONOTONIC));
}

static bool read_changes(void *server, int fd)
{
    struct nj_server *s = server;

    return nj_mgmt_read_changes(s->policy.policies, fd, nj_os_clock_gettime_ns(CLOCK_MONOTONIC));
}

bool nj__server_contact_running(struct nj_server *s)
{
    const struct nj_upgrade_hooks hooks = {.set_phase = set_phase,
                                           .on_yield = on_yield,
                                           .write_changes = write_changes,
                                           .read_changes = read_changes,
                                           .ctx = s};
    nj_ns timeout = (nj_ns)(s->settings.config->upgrade_timeout_s * (double)NJ_SEC);

    nj_upgrade_init(&s->upgrade, s->settings.config->upgrade_socket, timeout, &hooks);
    return nj_upgrade_contact(&s->upgrade, s->presets.argc, s->presets.argv, s->why,
                              sizeof s->why) == 0;
}

bool nj__server_agree_upgrade(struct nj_server *s)
{
    struct nj_upgrade_port port[NJ_SERVER_PORTS_MAX];

    for (uint32_t k = 0; k < s->ports.n; k++)
        port[k] = (struct nj_upgrade_port){.dev = &s->ports.port[k].dev,
                                           .iface = &s->ports.port[k].settings->iface,
                                           .channel = &s->ports.port[k].rings.peer_fd};
    return nj_upgrade_agree(&s->upgrade, port, s->ports.n, s->why, sizeof s->why) == 0;
}

bool nj__server_listen(struct nj_server *s)
{
    const char *user = s->privileges.user.name;

    return nj_upgrade_listen(&s->upgrade, user, s->why, sizeof s->why) == 0 &&
           nj__management_prepare(&s->management, user, s->why, sizeof s->why) == 0;
}

/* Packets are delivered to this process, too, before it takes new connections. */
bool nj__server_begin_upgrade(struct nj_server *s)
{
    for (uint32_t k = 0; k < s->ports.n; k++)
        if (nj_dpdk_port_attach_queues(&s->ports.port[k].dev, s->why, sizeof s->why) != 0)
            return false;
    return nj_upgrade_begin(&s->upgrade, s->why, sizeof s->why) == 0;
}
