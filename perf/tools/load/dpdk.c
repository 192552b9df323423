/* SPDX-License-Identifier: BSD-3-Clause */
#include "dpdk.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include <rte_launch.h>
#include <rte_lcore.h>

#include "base/compiler.h"
#include "base/set_error.h"
#include "config/eal_preset.h"
#include "config/settings_validate.h"
#include "dpdk/eal.h"
#include "dpdk/lcore_loop.h"
#include "dpdk/rss_key.h"
#include "dpdk/shard_rings.h"
#include "dpdk/tsc_clock.h"

#define TIME_WAIT (NJ_SEC) /* 2 MSL: our ports come round soon */

struct ground {
    struct nj_settings settings;
    struct nj_presets presets; /* with the EAL's arguments */
    bool has_own_arguments;    /* of the EAL, beside a preset */
    struct nj_dpdk_port port;
    struct nj_shard_rings rings;
    struct nj_shard_endpoint end[NJ_SHARDS_MAX];
    struct nj_tsc_clock clock;
    uint32_t n;
    struct nj_lcore lcore[NJ_SHARDS_MAX];
    struct nj_shard *shard[NJ_SHARDS_MAX];
    int (*loop)(uint32_t i, bool is_main);
};

static struct ground ground;

/* ---- the EAL's arguments ---- */

static bool chooses_lcores(int argc, char **argv)
{
    static const char *const names[] = {"-l", "-c", "--lcores", "--coremask"};

    for (int i = 1; i < argc; i++)
        for (size_t k = 0; k < NJ_ARRAY_LEN(names); k++)
            if (strncmp(argv[i], names[k], strlen(names[k])) == 0)
                return true;
    return false;
}

/* The first `n` CPUs that this process may use. False: there are fewer. */
static bool list_cpus(uint32_t n, char *out, size_t n_bytes)
{
    cpu_set_t mine;
    size_t at = 0;

    CPU_ZERO(&mine);
    sched_getaffinity(0, sizeof mine, &mine);
    for (int cpu = 0; n > 0 && cpu < CPU_SETSIZE && at < n_bytes; cpu++)
        if (CPU_ISSET(cpu, &mine)) {
            at += (size_t)snprintf(out + at, n_bytes - at, "%s%d", at > 0 ? "," : "", cpu);
            n--;
        }
    return n == 0 && at < n_bytes;
}

/* Adds the preset and lcores, and expands presets. */
static int make_arguments(const struct load_options *o, int argc, char **argv, char *why, size_t n)
{
    char preset[] = "--preset", lcores[] = "-l", cpus[NJ_SHARDS_MAX * 6];
    char **all = calloc((size_t)argc + 5, sizeof *all);
    int n_all = argc;

    if (!all)
        return nj_set_error(why, n, "out of memory");
    memcpy(all, argv, (size_t)argc * sizeof *all);
    if (o->preset) {
        all[n_all++] = preset;
        all[n_all++] = (char *)(uintptr_t)o->preset; /* it is only read */
    }
    if (!chooses_lcores(argc, argv)) {
        if (!list_cpus(o->n_threads, cpus, sizeof cpus)) {
            free(all);
            return nj_set_error(why, n, "--threads %u: there are fewer CPUs", o->n_threads);
        }
        all[n_all++] = lcores;
        all[n_all++] = cpus;
    }
    int rc = nj_presets_expand_eal_args(&ground.presets, n_all, all, why, n);
    free(all);
    return rc;
}

int load_dpdk_check(const struct load_options *o, int argc, char **argv, char *why, size_t n)
{
    if (nj_settings_from_partial_config(&ground.settings, &o->link, why, n) != 0)
        return -1;
    if (ground.settings.n_ports != 1)
        return nj_set_error(why, n, "--port: the load comes from one port");
    ground.has_own_arguments = argc > 1;
    return make_arguments(o, argc, argv, why, n);
}

static int start_eal(char *why, size_t n)
{
    struct nj_presets *p = &ground.presets;
    char cause[192];

    if (p->n_devices > 0 && nj_eal_find_unbound("/sys/bus/pci/devices", p->argc, p->argv, why, n))
        return -1;
    const char *tap = nj_eal_find_existing_tap(p->argc, p->argv);
    if (tap)
        return nj_set_error(why, n,
                            "tap device %.*s: an interface of that name exists already; choose "
                            "another iface=",
                            (int)strcspn(tap, ","), tap);
    if (nj_eal_init(p->argc, p->argv, cause, sizeof cause) != 0)
        return nj_set_error(why, n, "EAL: %s%s", cause,
                            ground.has_own_arguments ? " (the arguments before -- are DPDK's)"
                                                     : "");
    return nj_presets_check_ports_exist(p, why, n);
}

/* ---- the port and its shards ---- */

static int check_lcores(const struct load_options *o, uint32_t n, char *why, size_t why_bytes)
{
    if (n > NJ_SHARDS_MAX || n > o->n_conns)
        return nj_set_error(why, why_bytes, "%u lcores for %u connections: choose fewer with -l", n,
                            o->n_conns);
    if (!o->rate && !o->in_flight && o->n_conns / n > LOAD_ASKING_MAX)
        return nj_set_error(
            why, why_bytes,
            "%u connections that all ask at once: an lcore has buffers for %u: give --in-flight "
            "or --rate, and they take turns",
            o->n_conns, LOAD_ASKING_MAX);
    if (o->in_flight && o->in_flight < n)
        return nj_set_error(why, why_bytes, "--in-flight %u: fewer than lcores, %u", o->in_flight,
                            n);
    return 0;
}

static bool up_shard(const struct load_options *o, uint32_t i, nj_ns now)
{
    struct ground *g = &ground;
    struct nj_shard_config c = {
        .index = i,
        .n_shards = g->n,
        .steering = g->port.steering,
        .reta_size = g->port.reta_size,
        .rss_key = g->port.rss_key,
        .iface = g->settings.port[0].iface,
        .slaac = g->settings.port[0].slaac,
        .tx = g->port.tx,
        .tx_pool = g->port.tx_pool[i],
        .frag_table = g->port.frags[i],
        .conns_max = o->n_conns / g->n + 1024,
        .half_open_max = 1,
        .time_wait = TIME_WAIT,
        .conns.fibers_max = 1,
    };

    c.iface.mac = g->port.mac;
    c.iface.mtu = g->port.mtu;
    nj_shard_rings_bind_ops(&g->rings, &g->end[i], i, NULL, &c.ops);
    if (getrandom(&c.flow_key, sizeof c.flow_key, 0) < 0 ||
        getrandom(&c.isn_key, sizeof c.isn_key, 0) < 0 ||
        getrandom(&c.ndp_key, sizeof c.ndp_key, 0) < 0 ||
        getrandom(&c.conns.client_key, sizeof c.conns.client_key, 0) < 0)
        return false;
    g->shard[i] = aligned_alloc(NJ_CACHE_LINE, sizeof *g->shard[i]);
    if (g->shard[i] && nj_shard_init(g->shard[i], &c, now))
        return true;
    free(g->shard[i]);
    g->shard[i] = NULL;
    return false;
}

int load_dpdk_up(const struct load_options *o, uint32_t *n, char *why, size_t why_bytes)
{
    struct ground *g = &ground;
    struct nj_rss_key key;

    if (start_eal(why, why_bytes) != 0)
        return -1;
    uint32_t n_lcores = nj_lcores_list(g->lcore, NJ_SHARDS_MAX);
    if (check_lcores(o, n_lcores, why, why_bytes) != 0)
        return -1;
    *n = g->n = n_lcores;
    if (!nj_rss_key_generate(&key))
        return nj_set_error(why, why_bytes, "the system has no random numbers");
    const struct nj_dpdk_port_config want = {
        .id = g->settings.port[0].id,
        .n_shards = g->n,
        .offload = !o->link.no_offload,
        .mtu = o->link.mtu,
    };
    if (nj_dpdk_port_open(&g->port, &want, &key, why, why_bytes) != 0)
        return -1;
    nj_presets_warn_port_diff(&g->presets, &g->port, g->n, want.offload);
    bool good = nj_shard_rings_open(&g->rings, &g->port, g->n);
    nj_tsc_clock_init(&g->clock);
    for (uint32_t i = 0; good && i < g->n; i++)
        good = up_shard(o, i, load_dpdk_now());
    return good ? 0
                : nj_set_error(why, why_bytes, "not enough memory for %u connections", o->n_conns);
}

void load_dpdk_down(void)
{
    struct ground *g = &ground;

    for (uint32_t i = 0; i < g->n; i++) {
        if (g->shard[i])
            nj_shard_fini(g->shard[i]);
        free(g->shard[i]);
    }
    if (g->rings.port)
        nj_shard_rings_close(&g->rings);
    nj_dpdk_port_close(&g->port);
    nj_settings_free(&g->settings);
    nj_presets_free(&g->presets);
    nj_eal_fini();
}

struct nj_shard *load_dpdk_shard(uint32_t i)
{
    return ground.shard[i];
}

const char *load_dpdk_driver(void)
{
    return ground.port.driver;
}

nj_ns load_dpdk_now(void)
{
    return nj_tsc_clock_now(&ground.clock);
}

static int on_lcore(void *i)
{
    return ground.loop((uint32_t)(uintptr_t)i, false);
}

void load_dpdk_run(int (*loop)(uint32_t i, bool is_main))
{
    struct ground *g = &ground;
    uint32_t mine = 0;

    g->loop = loop;
    for (uint32_t i = 0; i < g->n; i++) {
        if (g->lcore[i].id == rte_get_main_lcore())
            mine = i;
        else
            rte_eal_remote_launch(on_lcore, (void *)(uintptr_t)i, g->lcore[i].id);
    }
    loop(mine, true);
    rte_eal_mp_wait_lcore();
}
