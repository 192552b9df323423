/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Clients of HTTP/2 that request a small file in an open loop: requests are due at random times
 * (a Poisson process), independent of the responses. A latency is the time from the sending of the
 * request to the begin of the step of this program that reads the response. How late the program
 * itself was with a request is recorded beside it. Requests that were under way while the program
 * itself stood still, as when the kernel gave its CPU to another process, are counted and have no
 * latency.
 */
#pragma once

#include "base/prng.h"
#include "fine_histogram.h"
#include "h2_client.h"
#include "hosts.h"
#include "party.h"

#define INNOCENTS_MAX 8u

struct innocent {
    struct party party; /* first */
    struct innocents *all;
    struct nj_tcb *tcb;
    bool open;
    struct h2_client h2;
};

struct innocents {
    struct hosts *hosts;
    const char *path;
    struct innocent client[INNOCENTS_MAX];
    struct nj_prng prng;
    double rate; /* requests per second */
    uint32_t next;
    nj_ns due, now;
    nj_ns measured_from, measured_to; /* due times */
    uint64_t n_asked, n_answered, n_full, n_stalled;
    nj_ns stalled_until; /* the last time that the program stood still */
    struct fine_histogram latency, late;
    bool broken; /* a connection ended, or a response was not 200 */
};

bool innocents_connect(struct innocents *v, struct hosts *hosts, uint16_t port, const char *path,
                       double rate, nj_ns now);
bool innocents_are_open(const struct innocents *v);

/* Records the requests that are due within [from, to). */
void innocents_measure(struct innocents *v, nj_ns from, nj_ns to);
/* Whether the time is over, and all recorded requests are answered. */
bool innocents_are_measured(const struct innocents *v, nj_ns now);

/* The program stood still until now. */
void innocents_stalled(struct innocents *v, nj_ns now);

/* Queues the requests that are due; the caller sends them at once. Returns their number. */
uint32_t innocents_step(struct innocents *v, nj_ns now);
void innocents_event(struct innocents *v, struct innocent *c, uint8_t events, nj_ns now);
