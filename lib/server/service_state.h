/* SPDX-License-Identifier: BSD-3-Clause */
/* What the service manager is told about the server, if service_notify is set: start, ready,
 * reload, stop, and that all lcores poll. See service_notify.h for the protocol, docs/deploy.md for
 * the service. */
#pragma once

#include "server/service_notify.h"

#define NJ_SERVICE_READY_BYTES 1536u

struct nj_service {
    struct nj_service_notify notify;    /* its watchdog: supervisor only */
    char ready[NJ_SERVICE_READY_BYTES]; /* the text of a server that is ready; set at the start */
    nj_ns began_at;                     /* supervisor only; 0: not yet */
    nj_ns announced_at;       /* supervisor only; when the state was last sent, 0: not yet */
    bool is_stuck_announced;  /* supervisor only */
    _Atomic bool is_yielding; /* another process takes new connections */
    _Atomic bool is_ready_announced, is_stopping;
};

/* The first message, before the start. Any thread. */
void nj__service_open(struct nj_service *v, bool is_notified);
/* READY when the addresses can be used, then the watchdog's messages. `stuck_lcore`: does not poll;
 * -1: all do. `n_open`: connections. `now`: of CLOCK_MONOTONIC. The supervisor, once per tick. */
void nj__service_tick(struct nj_service *v, bool has_tentative_addresses, int stuck_lcore,
                      uint64_t n_open, nj_ns now);
/* Another process takes new connections of this one, or does so no longer. The supervisor. */
void nj__service_yields(struct nj_service *v, bool yields, uint64_t n_open);
/* The supervisor, when the drain begins, which takes at most `drain`. */
void nj__service_stopping(struct nj_service *v, nj_ns drain, uint64_t n_open);
/* Around a reload. Any thread. */
void nj__service_reloading(struct nj_service *v);
void nj__service_reloaded(struct nj_service *v, bool ok, uint64_t n_open);
/* The start failed; nothing is sent any more. */
void nj__service_failed(struct nj_service *v, const char *why);
