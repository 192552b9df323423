/* SPDX-License-Identifier: BSD-3-Clause */
/* The event loop of virtual time: advances to the next event and executes it. */
#include "tcp_sim.h"

#include <stdlib.h>

#include "base/assert.h"
#include "support/mbuf_env.h"

#define RX_MBUFS       4096u
#define TX_MBUFS       8192u
#define TX_MBUFS_TIGHT 300u

/* Time after the end of all faults in which everything must complete: two rounds of TCP's maximum
 * back-off, 60 s, FIN-WAIT-2's 60 s, slow readers; and occasional time-outs if the queue is so
 * short that packets are still lost. */
#define CALM_MAX        (260 * NJ_SEC)
#define CALM_PER_PACKET (100 * NJ_MS)

/* Limit of frames on the link per necessary segment, and minimum limit: more is a packet storm. */
#define FRAMES_PER_PACKET 60u
#define FRAMES_LEAST      100000u
/* Limit of event times, above that of any valid seed. */
#define MOMENTS_MAX       5000000u

struct tsim_flow *nj_tsim_find(struct tsim *sim, unsigned host, uint16_t lport, uint16_t rport)
{
    for (uint32_t i = 0; i < sim->n_flows; i++)
        if (sim->flow[i].port[host] == lport && sim->flow[i].port[!host] == rport)
            return &sim->flow[i];
    return NULL;
}

struct tsim_env nj_tsim_env_new(void)
{
    struct tsim_env env = {.pattern = nj_tsim_pattern_new()};

    for (unsigned i = 0; i < 2; i++) {
        env.rx[i] = nj_test_pool(RX_MBUFS);
        env.tx[i] = nj_test_pool(TX_MBUFS);
        env.tight_tx[i] = nj_test_pool(TX_MBUFS_TIGHT);
    }
    return env;
}

void nj_tsim_env_free(struct tsim_env *env)
{
    for (unsigned i = 0; i < 2; i++) {
        nj_test_pool_free(env->rx[i]);
        nj_test_pool_free(env->tx[i]);
        nj_test_pool_free(env->tight_tx[i]);
    }
    free(env->pattern);
}

static void happen(struct tsim *sim, const struct sim_event *e)
{
    struct sim_frame *f = e->what;

    switch ((enum tsim_event)e->kind) {
    case TSIM_TO_0:
    case TSIM_TO_1:
        nj_tsim_host_receive(&sim->host[e->kind == TSIM_TO_1], f->bytes, f->n_bytes);
        free(f);
        break;
    case TSIM_FORGE:
        nj_tsim_forge(sim);
        break;
    case TSIM_FLOOD:
        nj_tsim_flood(sim);
        break;
    }
}

/* Processes one instant, not later than `until`. */
static void moment(struct tsim *sim, nj_ns until)
{
    nj_ns next = until, at[3] = {nj_sim_agenda_next(&sim->agenda), nj_tsim_host_next(&sim->host[0]),
                                 nj_tsim_host_next(&sim->host[1])};

    for (unsigned i = 0; i < 3; i++)
        next = at[i] < next ? at[i] : next;
    if (next > sim->now)
        sim->now = next;
    while (!sim->record.failed && nj_sim_agenda_next(&sim->agenda) <= sim->now) {
        struct sim_event e = nj_sim_agenda_pop(&sim->agenda);
        happen(sim, &e);
    }
    for (unsigned i = 0; i < 2 && !sim->record.failed; i++)
        if (nj_tsim_host_next(&sim->host[i]) <= sim->now)
            nj_tsim_host_step(&sim->host[i]);
    if (++sim->n_moments > MOMENTS_MAX)
        nj_tsim_fail(sim, "stuck: events without an end");
}

static bool quiet(const struct tsim *sim)
{
    for (uint32_t i = 0; i < sim->n_flows; i++)
        if (!nj_tsim_flow_done(&sim->flow[i]))
            return false;
    return sim->agenda.n == 0 && nj_tsim_host_quiet(&sim->host[0]) &&
           nj_tsim_host_quiet(&sim->host[1]);
}

static void say_stuck(struct tsim *sim)
{
    static const char *const name[] = {"absent", "waiting", "opening", "open", "over"};

    for (uint32_t i = 0; i < sim->n_flows; i++) {
        const struct tsim_flow *f = &sim->flow[i];
        if (!nj_tsim_flow_done(f))
            nj_tsim_fail(sim,
                         "stuck: flow %u: host 0 %s, sent %lu got %lu; host 1 %s, sent %lu got %lu",
                         i, name[f->side[0].state], (unsigned long)f->side[0].sent,
                         (unsigned long)f->side[0].got, name[f->side[1].state],
                         (unsigned long)f->side[1].sent, (unsigned long)f->side[1].got);
    }
    nj_tsim_fail(sim, "stuck: %u and %u connections never end", nj_tcp_conns(&sim->host[0].tcp),
                 nj_tcp_conns(&sim->host[1].tcp));
}

/* All bytes that applications plan to send, with the segments. */
static uint64_t all_bytes(const struct tsim *sim)
{
    uint64_t n = 0;

    for (uint32_t i = 0; i < sim->n_flows; i++)
        n += nj_tsim_total(&sim->flow[i], 0) + nj_tsim_total(&sim->flow[i], 1);
    return n;
}

static uint64_t all_packets(const struct tsim *sim)
{
    uint32_t mss = sim->mix.mss_clamp && sim->mix.mss_clamp < 500 ? TSIM_MSS_FLOOR - 12 : 500;
    return all_bytes(sim) / mss + sim->n_flows;
}

static nj_ns deadline(const struct tsim *sim)
{
    uint64_t n_bytes = all_bytes(sim), n_packets = all_packets(sim);
    nj_ns rtt = sim->mix.net[0].delay + sim->mix.net[1].delay;
    return sim->mix.calm_at + CALM_MAX + n_packets * (CALM_PER_PACKET + rtt) + sim->mix.time_wait +
           20 * n_bytes * (sim->mix.net[0].ns_per_byte + sim->mix.net[1].ns_per_byte);
}

static void run_until_quiet(struct tsim *sim)
{
    nj_ns last = deadline(sim);
    uint64_t n_frames_max = FRAMES_LEAST + FRAMES_PER_PACKET * all_packets(sim);

    while (!sim->record.failed && !quiet(sim)) {
        moment(sim, sim->calm ? last : sim->mix.calm_at);
        if (!sim->calm && sim->now >= sim->mix.calm_at) {
            sim->calm = true;
            nj_tsim_log(sim, "faults are over");
        }
        if (sim->now >= last)
            say_stuck(sim);
        if (sim->channel.stats.sent > n_frames_max)
            nj_tsim_fail(sim, "a storm: %lu frames for %lu bytes",
                         (unsigned long)sim->channel.stats.sent, (unsigned long)all_bytes(sim));
    }
}

static void log_mix(struct tsim *sim)
{
    const struct tsim_mix *m = &sim->mix;

    for (unsigned i = 0; i < 2; i++) {
        const struct sim_faults *f = &m->net[i];
        nj_tsim_log(sim,
                    "from host %u: delay %lu us, %u ns/byte, queue %lu us; ppm: loss %u, burst %u, "
                    "bad %u, duplicate %u, reorder %u, corrupt %u, truncate %u",
                    i, (unsigned long)(f->delay / NJ_US), f->ns_per_byte,
                    (unsigned long)(f->queue_max / NJ_US), f->loss, f->burst, f->to_bad,
                    f->duplicate, f->reorder, f->corrupt, f->truncate);
    }
    nj_tsim_log(sim, "%u flows; evil 0x%x of host %u; without%s%s%s; forged every %lu us, SYNs %lu",
                m->n_flows, m->evil, m->evil_host, m->no_ts ? " ts" : "",
                m->no_wscale ? " wscale" : "", m->no_sack ? " sack" : "",
                (unsigned long)(m->attack_every / NJ_US), (unsigned long)(m->flood_every / NJ_US));
}

bool nj_tsim_run_mix(struct tsim *sim, uint64_t seed, const struct tsim_env *env,
                     const struct tsim_mix *mix,
                     void (*plan)(struct tsim_flow *f, struct tsim *sim, uint32_t index))
{
    struct sim_record record = sim->record;

    memset(sim, 0, sizeof *sim);
    sim->record = record;
    sim->seed = seed;
    sim->env = env;
    sim->mix = *mix;
    sim->now = mix->start_at;
    nj_sim_record_begin(&sim->record, seed, sim->now);
    nj_prng_init(&sim->channel.prng, seed ^ 0x11411);
    nj_prng_init(&sim->malice, seed ^ 0xbad);
    memcpy(sim->channel.faults, mix->net, sizeof mix->net);
    nj_tsim_host_init(sim, 0);
    nj_tsim_host_init(sim, 1);
    sim->n_flows = mix->n_flows;
    for (uint32_t i = 0; i < sim->n_flows; i++) {
        struct tsim_flow *f = &sim->flow[i];
        f->sim = sim;
        f->index = i;
        for (unsigned h = 0; h < 2; h++) {
            f->side[h].flow = f;
            f->side[h].host = h;
        }
        plan(f, sim, i);
    }
    log_mix(sim);
    nj_tsim_forger_begin(sim);
    run_until_quiet(sim);
    if (sim->record.failed)
        return false;
    nj_tsim_check_quiet(sim);
    nj_tsim_host_fini(&sim->host[0]);
    nj_tsim_host_fini(&sim->host[1]);
    nj_tsim_check_freed(sim);
    nj_sim_agenda_fini(&sim->agenda);
    return !sim->record.failed;
}

bool nj_tsim_run(struct tsim *sim, uint64_t seed, const struct tsim_env *env)
{
    struct tsim_mix mix;

    nj_tsim_mix_draw(&mix, seed);
    return nj_tsim_run_mix(sim, seed, env, &mix, nj_tsim_plan);
}
