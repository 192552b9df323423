/* SPDX-License-Identifier: BSD-3-Clause */
/* The event loop of virtual time: advances to the next event and executes it. */
#include "sim.h"
#include "tls.h"

#include <stdlib.h>

/* Time after the end of all faults in which everything must complete: two rounds of TCP's maximum
 * back-off, 60 s, and the time of a slow link. */
#define CALM_MAX  (180 * NJ_SEC)
/* A draining server waits for absent peers: 60 s for their FIN, 75 s idle. */
#define DRAIN_MAX (180 * NJ_SEC)

static void happen(struct sim *sim, const struct sim_event *e)
{
    switch ((enum sim_event_kind)e->kind) {
    case SIM_FRAME_TO_SERVER:
        nj_sim_server_receive(sim, e->what);
        free(e->what);
        break;
    case SIM_FRAME_TO_CLIENT:
        nj_sim_client_receive(sim, e->what);
        free(e->what);
        break;
    case SIM_TASK_DONE:
        nj_sim_workers_done(sim, e->what);
        break;
    case SIM_DISK_DONE:
        nj_sim_disk_done(sim, e->what);
        break;
    }
    sim->progress++;
}

static void earlier(nj_ns *a, nj_ns b)
{
    if (b < *a)
        *a = b;
}

void nj_sim_moment(struct sim *sim, nj_ns until)
{
    nj_ns next = until;

    earlier(&next, nj_sim_agenda_next(&sim->agenda));
    for (uint32_t i = 0; i < SIM_SHARDS; i++)
        earlier(&next, nj_sim_lane_next(&sim->server.lane[i]));
    earlier(&next, nj_sim_reader_next(sim));
    earlier(&next, nj_sim_client_next(sim));
    earlier(&next, sim->limits.change_at);
    if (next > sim->now)
        sim->now = next;
    if (sim->now >= sim->limits.change_at)
        nj_sim_limits_change(sim);
    while (nj_sim_agenda_next(&sim->agenda) <= sim->now) {
        struct sim_event e = nj_sim_agenda_pop(&sim->agenda);
        happen(sim, &e);
    }
    if (nj_sim_reader_next(sim) <= sim->now)
        nj_sim_server_read(sim);
    for (uint32_t i = 0; i < SIM_SHARDS; i++) {
        struct sim_lane *l = &sim->server.lane[i];
        if (nj_sim_lane_next(l) <= sim->now || nj_sim_chance(&sim->server.prng, sim->mix.spurious))
            nj_sim_lane_step(l);
    }
    if (nj_sim_client_next(sim) <= sim->now)
        nj_sim_client_step(sim);
}

static void drain(struct sim *sim)
{
    nj_sim_log(sim, "server drains");
    sim->draining = true;
    sim->drain_began_at = sim->now;
    for (uint32_t i = 0; i < SIM_SHARDS; i++)
        nj_conns_drain(&sim->server.lane[i].shard->conns, sim->now);
}

/* Are only clients left that wait for the server to end their connections? */
static bool only_stayers_left(const struct sim *sim)
{
    for (uint32_t i = 0; i < sim->client.n_conns; i++) {
        const struct sim_conn *c = &sim->client.conn[i];
        bool stays = c->state == SIM_OPEN && c->speaks && c->stay && nj_sim_http(c)->is_done(c);
        if (c->state != SIM_OVER && !stays)
            return false;
    }
    return true;
}

static bool queues_empty(const struct sim *sim)
{
    for (uint32_t i = 0; i < SIM_SHARDS; i++)
        if (sim->server.lane[i].rx.n > 0 || sim->server.lane[i].steered.n > 0)
            return false;
    return sim->agenda.n == 0 && sim->client.rx.n == 0 && nj_sim_reader_next(sim) == NJ_NEVER;
}

static bool quiet(const struct sim *sim)
{
    return queues_empty(sim) && nj_sim_client_done(sim) && !nj_sim_server_busy(sim) &&
           nj_tcp_conns(&sim->client.tcp) == 0 && sim->client.tcp.n_time_wait == 0 &&
           sim->server.lane[0].shard->tcp.n_time_wait == 0 &&
           sim->server.lane[1].shard->tcp.n_time_wait == 0;
}

static void run_until_drained(struct sim *sim)
{
    nj_ns deadline = sim->mix.calm_at + CALM_MAX;
    nj_ns drain_at = sim->mix.drain_at;

    while (!sim->record.failed && !sim->draining) {
        nj_ns until = sim->calm ? deadline : sim->mix.calm_at;
        earlier(&until, drain_at);
        nj_sim_moment(sim, until);
        if (!sim->calm && sim->now >= sim->mix.calm_at) {
            sim->calm = true;
            nj_sim_log(sim, "faults are over");
        }
        if (sim->now >= drain_at || only_stayers_left(sim))
            drain(sim);
        else if (sim->now >= deadline)
            nj_sim_fail(sim, "stuck: not all requests were answered");
    }
}

static void run_until_quiet(struct sim *sim)
{
    nj_ns deadline = (sim->calm ? sim->now : sim->mix.calm_at) + DRAIN_MAX + sim->mix.time_wait;

    while (!sim->record.failed && !quiet(sim)) {
        nj_ns until = sim->calm ? deadline : sim->mix.calm_at;
        nj_sim_moment(sim, until);
        if (sim->now >= sim->mix.calm_at)
            sim->calm = true;
        if (sim->now >= deadline)
            nj_sim_fail(sim, "stuck: the server does not come to rest (%u, %u connections)",
                        nj_tcp_conns(&sim->server.lane[0].shard->tcp),
                        nj_tcp_conns(&sim->server.lane[1].shard->tcp));
    }
}

void nj_sim_begin(struct sim *sim, uint64_t seed, const struct sim_mix *mix,
                  const struct sim_pools *pools)
{
    struct sim_record record = sim->record;

    memset(sim, 0, sizeof *sim);
    sim->record = record;
    sim->seed = seed;
    sim->mix = *mix;
    sim->now = sim->mix.start_at;
    sim->tls = pools->tls;
    nj_sim_tls_begin(sim);
    nj_sim_record_begin(&sim->record, seed, sim->now);
    sim->link.faults[0] = sim->link.faults[1] = sim->mix.net;
    nj_prng_init(&sim->link.prng, seed ^ 0x11411);
    sim->store = nj_sim_store_new(sim);
    nj_sim_disk_init(&sim->disk, sim);
    nj_sim_client_init(sim, pools);
    nj_sim_limits_init(sim);
    nj_sim_server_init(sim, pools);
}

bool nj_sim_end(struct sim *sim, const struct sim_pools *pools)
{
    run_until_drained(sim);
    run_until_quiet(sim);
    if (sim->record.failed)
        return false;
    nj_sim_check_quiet(sim);
    nj_sim_client_fini(sim);
    nj_sim_server_fini(sim);
    sim->n_files_left = nj_sim_store_free(sim->store);
    nj_sim_limits_fini(sim);
    nj_sim_check_freed(sim, pools);
    nj_sim_resent_fini(&sim->resent);
    nj_sim_agenda_fini(&sim->agenda);
    return !sim->record.failed;
}

bool nj_sim_run(struct sim *sim, uint64_t seed, const struct sim_pools *pools)
{
    struct sim_mix mix;

    nj_sim_mix_draw(&mix, seed, pools->always_tls);
    mix.http1 = pools->always_http1;
    nj_sim_begin(sim, seed, &mix, pools);
    return nj_sim_end(sim, pools);
}
