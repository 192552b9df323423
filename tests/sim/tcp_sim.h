/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two hosts with nothing but TCP on them, a bad network between them, bad peers, and forgers by the
 * wayside, in virtual time. All that happens follows from the seed.
 *
 *   tcp_main.c    command line              tcp_mix.c    what a seed brings
 *   tcp_sim.c     the loop over time        tcp_host.c   a host: packets, timers, steps
 *   tcp_plan.c    what applications mean    tcp_app.c    what they do
 *   tcp_middle.c  what the wire rewrites    tcp_forger.c segments that nobody sent
 *   tcp_track.c   laws seen from the wire   tcp_laws.c   laws seen from inside
 *   tcp_probe.h   how to look inside        tcp_golden.c the table of throughput
 *
 * Faults end at mix.calm_at; from then on every connection must finish in bounded time.
 */
#ifndef NJ_TESTS_SIM_TCP_SIM_H
#define NJ_TESTS_SIM_TCP_SIM_H

#include "agenda.h"
#include "queue.h"
#include "record.h"
#include "tcp_flow.h"
#include "tcp_mix.h"
#include "tcp_probe.h"

#define TSIM_LISTEN_PORT 80u

/* What is kept from seed to seed, because making it takes longer than running one. */
struct tsim_env {
    struct rte_mempool *rx[2], *tx[2], *tight_tx[2]; /* by host */
    uint8_t *pattern;                                /* the bytes of all streams */
};

/* Frames arrive at host 0 or 1: kinds 0 and 1. */
enum tsim_event { TSIM_TO_0, TSIM_TO_1, TSIM_FORGE, TSIM_FLOOD };

struct tsim_host {
    struct tsim *sim;
    unsigned index;
    struct nj_iface iface;
    struct nj_addr ip;
    struct rte_mempool *rx_pool, *tx_pool;
    struct nj_tcp tcp;
    struct nj_counters counters;
    struct nj_prng prng;
    struct sim_queue rx;
    nj_ns stepped_at, gap; /* the gap grows while steps are in vain */
    bool device_full;      /* in this step */
    uint16_t ip_ident;
    uint64_t n_received, n_malformed, n_emitted, n_resets, n_resent;
    uint64_t rto_seen; /* counter tcp_rto, when it sent last */
    nj_ns second_at;   /* challenge ACKs are counted by the second */
    uint64_t challenges_before;
};

struct tsim {
    uint64_t seed;
    struct tsim_mix mix;
    const struct tsim_env *env;
    nj_ns now;
    bool calm;
    struct sim_agenda agenda;
    struct sim_channel channel;
    struct tsim_host host[2];
    uint32_t n_flows;
    struct tsim_flow flow[TSIM_FLOWS_MAX];
    struct nj_prng malice; /* of middle and forger */
    uint64_t n_forged, n_moments;
    struct sim_record record;
    uint64_t counter[NJ_N_COUNTERS]; /* of both hosts, when all is done */
};

uint8_t *nj_tsim_pattern_new(void);
struct tsim_env nj_tsim_env_new(void);
void nj_tsim_env_free(struct tsim_env *env);

/* Run one seed to its end. False: sim->record.why says what was wrong; nothing is freed then. */
bool nj_tsim_run(struct tsim *sim, uint64_t seed, const struct tsim_env *env);
/* The same with a mix that was made up and flows as `plan` says. */
bool nj_tsim_run_mix(struct tsim *sim, uint64_t seed, const struct tsim_env *env,
                     const struct tsim_mix *mix,
                     void (*plan)(struct tsim_flow *f, struct tsim *sim, uint32_t index));

/* The first failure of a seed counts. */
#define nj_tsim_fail(sim, ...) nj_sim_record_fail(&(sim)->record, (sim)->now, __VA_ARGS__)
/* A line in the trace. */
#define nj_tsim_log(sim, ...)  nj_sim_record_line(&(sim)->record, (sim)->now, __VA_ARGS__)

/* The flow whose port at `host` is `lport`, or NULL. */
struct tsim_flow *nj_tsim_find(struct tsim *sim, unsigned host, uint16_t lport, uint16_t rport);

/* --- tcp_host.c ------------------------------------------------------------------------------ */

void nj_tsim_host_init(struct tsim *sim, unsigned index);
void nj_tsim_host_fini(struct tsim_host *h);
/* A frame arrives and waits for the next step. */
void nj_tsim_host_receive(struct tsim_host *h, const uint8_t *bytes, uint32_t n_bytes);
/* A forged frame goes straight to TCP: between two steps, when nothing else moves. */
void nj_tsim_host_inject(struct tsim_host *h, const uint8_t *bytes, uint32_t n_bytes);
nj_ns nj_tsim_host_next(const struct tsim_host *h);
void nj_tsim_host_step(struct tsim_host *h);
bool nj_tsim_host_quiet(const struct tsim_host *h);

/* --- tcp_middle.c ---------------------------------------------------------------------------- */

/* A frame of `n_bytes` leaves host `from`; `fresh`: it has bytes that were never sent before. The
 * buffer holds SIM_FRAME_MAX bytes and may be written to. */
void nj_tsim_middle(struct tsim *sim, unsigned from, uint8_t *frame, uint32_t n_bytes, bool fresh);

/* --- tcp_forger.c ---------------------------------------------------------------------------- */

void nj_tsim_forger_begin(struct tsim *sim);
void nj_tsim_forge(struct tsim *sim);
void nj_tsim_flood(struct tsim *sim);

/* --- tcp_laws.c ------------------------------------------------------------------------------ */

/* After each step of a host. */
void nj_tsim_check_step(struct tsim_host *h);
/* Before a segment with new data of `n_bytes` leaves. */
void nj_tsim_check_new_data(struct tsim_side *s, uint32_t n_bytes);
/* A segment is sent again. */
void nj_tsim_check_resent(struct tsim_side *s, const struct sim_raw *r);
/* When all is said and done, before anything is freed; and after. */
void nj_tsim_check_quiet(struct tsim *sim);
void nj_tsim_check_freed(struct tsim *sim);

#endif
