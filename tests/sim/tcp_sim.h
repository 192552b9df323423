/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two hosts with TCP only, a faulty network, misbehaving peers and forgers, in virtual time. A seed
 * determines the whole run.
 *
 *   tcp_main.c    command line              tcp_mix.c    parameters drawn from a seed
 *   tcp_sim.c     event loop                tcp_host.c   a host: packets, timers, steps
 *   tcp_plan.c    plans of applications     tcp_app.c    applications
 *   tcp_middle.c  middleboxes and the link  tcp_forger.c forged segments
 *   tcp_track.c   invariants of the wire    tcp_laws.c   internal invariants
 *   tcp_probe.h   access to internals       tcp_golden.c the table of throughput
 *
 * Faults end at mix.calm_at. From then on every connection must finish in bounded time.
 */
#pragma once

#include "agenda.h"
#include "queue.h"
#include "record.h"
#include "tcp_flow.h"
#include "tcp_mix.h"
#include "tcp_probe.h"

#include "telem/counters.h"

#define TSIM_LISTEN_PORT 80u

/* Kept from seed to seed, because creation takes longer than a run. */
struct tsim_env {
    struct rte_mempool *rx[2], *tx[2], *tight_tx[2]; /* by host */
    uint8_t *pattern;                                /* the bytes of all streams */
};

/* Arrivals at host 0 and 1 are kinds 0 and 1. */
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
    nj_ns stepped_at, gap; /* the gap grows while steps have no effect */
    bool device_full;      /* in this step */
    uint16_t ip_ident;
    uint64_t n_received, n_malformed, n_emitted, n_resets, n_resent;
    uint64_t rto_seen; /* value of counter tcp_rto at the last transmission */
    nj_ns second_at;   /* challenge ACKs are counted per second */
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
    struct nj_prng malice; /* for middle and forger */
    uint64_t n_forged, n_moments;
    struct sim_record record;
    uint64_t counter[NJ_COUNTERS_MAX]; /* of both hosts, at the end */
};

uint8_t *nj_tsim_pattern_new(void);
struct tsim_env nj_tsim_env_new(void);
void nj_tsim_env_free(struct tsim_env *env);

/* Run one seed to its end. False: the reason is in sim->record.why; nothing is freed. */
bool nj_tsim_run(struct tsim *sim, uint64_t seed, const struct tsim_env *env);
/* The same with a given mix, and flows planned by `plan`. */
bool nj_tsim_run_mix(struct tsim *sim, uint64_t seed, const struct tsim_env *env,
                     const struct tsim_mix *mix,
                     void (*plan)(struct tsim_flow *f, struct tsim *sim, uint32_t index));

/* Only the first failure of a seed is kept. */
#define nj_tsim_fail(sim, ...) nj_sim_record_fail(&(sim)->record, (sim)->now, __VA_ARGS__)
/* A line in the trace. */
#define nj_tsim_log(sim, ...)  nj_sim_record_line(&(sim)->record, (sim)->now, __VA_ARGS__)

/* The flow whose port at `host` is `lport`, or NULL. */
struct tsim_flow *nj_tsim_find(struct tsim *sim, unsigned host, uint16_t lport, uint16_t rport);

/* --- tcp_host.c ------------------------------------------------------------------------------ */

void nj_tsim_host_init(struct tsim *sim, unsigned index);
void nj_tsim_host_fini(struct tsim_host *h);
/* A frame arrives and is queued for the next step. */
void nj_tsim_host_receive(struct tsim_host *h, const uint8_t *bytes, uint32_t n_bytes);
/* A forged frame is passed to TCP directly, between two steps. */
void nj_tsim_host_inject(struct tsim_host *h, const uint8_t *bytes, uint32_t n_bytes);
nj_ns nj_tsim_host_next(const struct tsim_host *h);
void nj_tsim_host_step(struct tsim_host *h);
bool nj_tsim_host_quiet(const struct tsim_host *h);

/* --- tcp_middle.c ---------------------------------------------------------------------------- */

/* A frame of `n_bytes` leaves host `from`; `fresh`: it has bytes that were never sent before. The
 * buffer holds SIM_FRAME_MAX bytes and is writable. */
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
/* At the end, before memory is freed; and after. */
void nj_tsim_check_quiet(struct tsim *sim);
void nj_tsim_check_freed(struct tsim *sim);
