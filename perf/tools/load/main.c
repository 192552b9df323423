/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nightjar-load: a load generator for HTTP/2 and HTTP/1.1 on nightjar's own stack. Each lcore has a
 * shard, as in the server; a crowd of clients (crowd.h) opens its connections. The main lcore also
 * conducts: it sets the phases of the others, such as warm-up, measurement and end.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include <rte_errno.h>
#include <rte_launch.h>
#include <rte_lcore.h>
#include <rte_pause.h>

#include "config/settings_validate.h"
#include "crowd.h"
#include "dpdk/eal.h"
#include "dpdk/lcore_loop.h"
#include "dpdk/rss_key.h"
#include "dpdk/shard_rings.h"
#include "dpdk/tsc_clock.h"
#include "report.h"

#define CLOSE_TIME  (2 * NJ_SEC)
#define CLOSED_TIME (200 * NJ_MS) /* for the last ACKs, which a peer may need again */
#define ENDED_MAX   100u          /* connections, and an eighth, while others are opened */
#define TIME_WAIT   (NJ_SEC)      /* 2 MSL: our ports come round soon */

struct load {
    struct load_options o;
    struct nj_settings settings;
    struct nj_dpdk_port port;
    struct nj_shard_rings rings;
    struct nj_shard_endpoint end[NJ_SHARDS_MAX];
    struct nj_tsc_clock clock;
    uint32_t n;
    struct nj_lcore lcore[NJ_SHARDS_MAX];
    struct nj_shard *shard[NJ_SHARDS_MAX];
    struct crowd *crowd[NJ_SHARDS_MAX];
    struct load_report report;
    _Atomic enum load_phase phase;
    nj_ns phase_at, told_at, closed_at, moved_at;
    uint64_t moved; /* completed connections and requests, until moved_at */
    bool failed;
    char why[256];
};

static struct load load;
static volatile sig_atomic_t told_to_stop;

static void on_signal(int number)
{
    (void)number;
    told_to_stop = 1;
}

/* ---- up and down ---- */

static bool up_shard(uint32_t i, nj_ns now)
{
    struct load *l = &load;
    struct nj_shard_config c = {
        .index = i,
        .n_shards = l->n,
        .steering = l->port.steering,
        .reta_size = l->port.reta_size,
        .rss_key = l->port.rss_key,
        .iface = l->settings.port[0].iface,
        .slaac = l->settings.port[0].slaac,
        .tx = l->port.tx,
        .tx_pool = l->port.tx_pool[i],
        .frag_table = l->port.frags[i],
        .conns_max = l->o.n_conns / l->n + 1024,
        .half_open_max = 1,
        .time_wait = TIME_WAIT,
        .conns.fibers_max = 1,
    };

    c.iface.mac = l->port.mac;
    c.iface.mtu = l->port.mtu;
    nj_shard_rings_bind_ops(&l->rings, &l->end[i], i, NULL, &c.ops);
    if (getrandom(&c.flow_key, sizeof c.flow_key, 0) < 0 ||
        getrandom(&c.isn_key, sizeof c.isn_key, 0) < 0 ||
        getrandom(&c.ndp_key, sizeof c.ndp_key, 0) < 0 ||
        getrandom(&c.conns.client_key, sizeof c.conns.client_key, 0) < 0)
        return false;
    l->shard[i] = aligned_alloc(NJ_CACHE_LINE, sizeof *l->shard[i]);
    l->crowd[i] = calloc(1, sizeof *l->crowd[i]);
    if (!l->shard[i] || !l->crowd[i])
        return false;
    if (!nj_shard_init(l->shard[i], &c, now)) {
        free(l->shard[i]);
        l->shard[i] = NULL;
        return false;
    }
    return crowd_init(l->crowd[i], &l->o, l->shard[i], i, l->n);
}

/* The error of the link, before the start. */
static bool check_link(struct load *l)
{
    if (nj_settings_from_partial_config(&l->settings, &l->o.link, l->why, sizeof l->why) != 0)
        return false;
    if (l->settings.n_ports == 1)
        return true;
    snprintf(l->why, sizeof l->why, "--port: the load comes from one port");
    return false;
}

static bool up(int argc, char **argv)
{
    struct load *l = &load;
    char cause[192];

    if (nj_eal_init(argc, argv, cause, sizeof cause) != 0) {
        snprintf(l->why, sizeof l->why, "EAL: %s (the arguments before -- are DPDK's)", cause);
        return false;
    }
    l->n = nj_lcores_list(l->lcore, NJ_SHARDS_MAX);
    if (l->n > NJ_SHARDS_MAX || l->n > l->o.n_conns) {
        snprintf(l->why, sizeof l->why, "%u lcores for %u connections: choose fewer with -l", l->n,
                 l->o.n_conns);
        return false;
    }
    if (!l->o.rate && !l->o.in_flight && l->o.n_conns / l->n > LOAD_ASKING_MAX) {
        snprintf(
            l->why, sizeof l->why,
            "%u connections that all ask at once: an lcore has buffers for %u: give --in-flight "
            "or --rate, and they take turns",
            l->o.n_conns, LOAD_ASKING_MAX);
        return false;
    }
    if (l->o.in_flight && l->o.in_flight < l->n) {
        snprintf(l->why, sizeof l->why, "--in-flight %u: fewer than lcores, %u", l->o.in_flight,
                 l->n);
        return false;
    }
    struct nj_rss_key key;
    snprintf(l->why, sizeof l->why, "the system has no random numbers");
    if (!nj_rss_key_generate(&key))
        return false;
    const struct nj_dpdk_port_config want = {
        .id = l->settings.port[0].id,
        .n_shards = l->n,
        .offload = !l->o.link.no_offload,
        .mtu = l->o.link.mtu,
    };
    if (nj_dpdk_port_open(&l->port, &want, &key, l->why, sizeof l->why) != 0)
        return false;
    snprintf(l->why, sizeof l->why, "not enough memory for %u connections", l->o.n_conns);
    if (!nj_shard_rings_open(&l->rings, &l->port, l->n))
        return false;
    nj_tsc_clock_init(&l->clock);
    nj_ns now = nj_tsc_clock_now(&l->clock);
    for (uint32_t i = 0; i < l->n; i++)
        if (!up_shard(i, now))
            return false;
    l->report = (struct load_report){.o = &l->o, .driver = l->port.driver, .n_lcores = l->n};
    l->report.series = calloc(LOAD_SERIES_MAX, sizeof *l->report.series);
    l->phase_at = l->told_at = now;
    load_sum_take(&l->report.last, l->crowd, l->n, now);
    return true;
}

static void down(void)
{
    struct load *l = &load;
    nj_ns now = l->clock.ns_per_cycle_q32 ? nj_tsc_clock_now(&l->clock) : 0;

    for (uint32_t i = 0; i < l->n && i < NJ_SHARDS_MAX; i++) {
        if (l->crowd[i])
            crowd_fini(l->crowd[i], now);
        if (l->shard[i])
            nj_shard_fini(l->shard[i]);
        free(l->crowd[i]);
        free(l->shard[i]);
    }
    if (l->rings.port)
        nj_shard_rings_close(&l->rings);
    nj_dpdk_port_close(&l->port);
    nj_settings_free(&l->settings);
    free(l->report.series);
    nj_eal_fini();
}

/* ---- the conductor ---- */

static void enter(enum load_phase phase, nj_ns now)
{
    struct load *l = &load;

    if (phase == LOAD_MEASURING) {
        load_sum_take(&l->report.from, l->crowd, l->n, now);
        l->report.last = l->report.from;
        l->told_at = now;
    }
    if (phase == LOAD_FINISHING)
        load_sum_take(&l->report.to, l->crowd, l->n, now);
    l->phase_at = l->moved_at = l->closed_at = now;
    atomic_store_explicit(&l->phase, phase, memory_order_release);
}

static void give_up(const char *what, const struct load_sum *s, nj_ns now)
{
    struct load *l = &load;

    snprintf(l->why, sizeof l->why,
             "%s: %lu of %u connections are open after %.1f s, %lu were refused, %lu ended: %s",
             what, (unsigned long)s->n_open, l->o.n_conns,
             (double)(now - l->phase_at) / (double)NJ_SEC, (unsigned long)s->refused,
             (unsigned long)(s->closed + s->broken),
             s->fault     ? s->fault
             : s->refused ? "is it listening there, and how many does it take?"
                          : "no answer from there");
    l->failed = true;
    enter(LOAD_CLOSING, now);
}

/* No progress for longer than the timeout of a request. */
static bool stands_still(const struct load_sum *s, nj_ns now)
{
    struct load *l = &load;
    uint64_t moved = s->connected + s->done + s->reset + s->body_bytes + s->upload_bytes;

    if (moved != l->moved)
        l->moved_at = now;
    l->moved = moved;
    return now - l->moved_at > l->o.timeout;
}

static void conduct(nj_ns now)
{
    struct load *l = &load;
    enum load_phase phase = atomic_load_explicit(&l->phase, memory_order_relaxed);
    nj_ns time = now - l->phase_at;
    struct load_sum s;

    if (told_to_stop && phase < LOAD_MEASURING) {
        snprintf(l->why, sizeof l->why, "stopped before anything was measured");
        l->failed = true;
        enter(LOAD_CLOSING, now);
        return;
    }
    load_sum_take(&s, l->crowd, l->n, now);
    bool still = stands_still(&s, now);
    switch (phase) {
    case LOAD_OPENING:
        if (s.n_open == l->o.n_conns)
            enter(l->o.warm_up ? LOAD_WARMING : LOAD_MEASURING, now);
        else if (still)
            give_up("it does not begin", &s, now);
        else if (s.closed + s.broken > l->o.n_conns / 8 + ENDED_MAX)
            give_up("the server ends them again", &s, now); /* it would never end */
        break;
    case LOAD_WARMING:
        if (time >= l->o.warm_up)
            enter(LOAD_MEASURING, now);
        break;
    case LOAD_MEASURING:
        if (told_to_stop || (l->o.n_requests ? s.asked >= l->o.n_requests && s.n_under_way == 0
                                             : time >= l->o.duration))
            enter(LOAD_FINISHING, now);
        else if (l->o.n_requests && still)
            give_up("it does not go on", &s, now);
        break;
    case LOAD_FINISHING:
        if (s.n_under_way == 0 || time > l->o.timeout || told_to_stop)
            enter(LOAD_CLOSING, now);
        break;
    case LOAD_CLOSING:
        if (s.n_open > 0)
            l->closed_at = now;
        if (now - l->closed_at > CLOSED_TIME || time > CLOSE_TIME)
            enter(LOAD_OVER, now);
        break;
    case LOAD_OVER:
        break;
    }
}

/* ---- the loop ---- */

#define LOOK_EVERY 64u /* loops between two checks of the conductor */

static int loop(void *arg)
{
    struct load *l = &load;
    uint32_t i = (uint32_t)(uintptr_t)arg, n_loops = 0;
    struct crowd *c = l->crowd[i];
    bool conductor = l->lcore[i].id == rte_get_main_lcore();
    uint64_t tsc = rte_rdtsc();
    enum load_phase phase;

    while ((phase = atomic_load_explicit(&l->phase, memory_order_acquire)) != LOAD_OVER) {
        nj_ns now = nj_tsc_clock_to_ns(&l->clock, tsc);
        uint32_t work = crowd_run(c, phase, now) + nj_shard_step(l->shard[i], now);
        if (conductor && n_loops++ % LOOK_EVERY == 0)
            conduct(now);
        if (conductor && now - l->told_at >= NJ_SEC) {
            l->told_at += NJ_SEC;
            load_report_progress(&l->report, l->crowd, phase, now);
        }
        if (work == 0)
            rte_pause();
        uint64_t then = tsc;
        _Atomic uint64_t *cycles = work ? &c->cycles_busy : &c->cycles_idle;
        tsc = rte_rdtsc();
        atomic_store_explicit(cycles,
                              atomic_load_explicit(cycles, memory_order_relaxed) + tsc - then,
                              memory_order_relaxed);
    }
    nj_ns now = nj_tsc_clock_to_ns(&l->clock, tsc);
    nj_tcp_abort_all(&l->shard[i]->tcp, now); /* peers of open connections receive a reset */
    nj_shard_step(l->shard[i], now);
    nj_conns_end(&l->shard[i]->conns);
    return 0;
}

static void run(void)
{
    struct load *l = &load;
    uint32_t mine = 0;

    for (uint32_t i = 0; i < l->n; i++) {
        if (l->lcore[i].id == rte_get_main_lcore())
            mine = i;
        else
            rte_eal_remote_launch(loop, (void *)(uintptr_t)i, l->lcore[i].id);
    }
    loop((void *)(uintptr_t)mine);
    rte_eal_mp_wait_lcore();
    load_sum_take(&l->report.end, l->crowd, l->n, l->phase_at);
    for (uint32_t i = 0; i < l->n; i++) {
        fine_histogram_merge(&l->report.total, &l->crowd[i]->total);
        fine_histogram_merge(&l->report.first, &l->crowd[i]->first);
    }
}

int main(int argc, char **argv)
{
    struct load *l = &load;
    int n_eal = 0;
    bool good = false;

    while (n_eal < argc && strcmp(argv[n_eal], "--") != 0)
        n_eal++;
    /* Without "--" there are no EAL arguments, such as in a call for help. */
    bool split = n_eal < argc;
    switch (load_options_read(&l->o, split ? argc - n_eal : argc, split ? argv + n_eal : argv)) {
    case LOAD_HELPED:
        return 0;
    case LOAD_WRONG:
        return 2;
    case LOAD_GO:
        break;
    }
    if (!check_link(l)) {
        fprintf(stderr, "nightjar-load: %s\n", l->why);
        nj_settings_free(&l->settings);
        return 2;
    }
    if (split)
        argv[n_eal] = NULL;
    signal(SIGINT, on_signal);
    signal(SIGTERM, on_signal);
    if (up(split ? n_eal : 1, argv)) {
        run();
        good = !l->failed && load_report_end(&l->report) && l->report.end.done > 0;
    } else {
        l->failed = true;
    }
    if (l->failed)
        fprintf(stderr, "nightjar-load: %s\n", l->why);
    down();
    return good ? 0 : 1;
}
