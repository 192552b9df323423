/* SPDX-License-Identifier: BSD-3-Clause */
/* Two ports, a pipe for each direction, and the loop that carries frames in real time. */
#pragma once

#include <stdatomic.h>
#include <stdio.h>

#include "pipe.h"
#include "port.h"

#define NJ_LATE_BUCKETS 20000u /* of a microsecond; the last one has all later frames */

struct nj_link {
    struct nj_port port[2];
    struct nj_pipe pipe[2]; /* pipe[i] carries what port[i] received */
    nj_ns spin;             /* time before a frame is due in which the loop does not sleep */
    nj_ns quiet;            /* time without arrivals after which a stopped link ends */
    _Atomic bool stop;
    uint64_t late[NJ_LATE_BUCKETS], n_late; /* histogram of the lateness of frames; their number */
};

/* Runs until `stop` is set. Then it ends when the link is empty and no frame has arrived for
 * `quiet`, after NJ_LINK_STOP_MAX at the latest. */
#define NJ_LINK_STOP_MAX (3 * NJ_SEC)
void nj_link_run(struct nj_link *l);

/* Quantile `share` of the lateness of frames, in microseconds. */
uint32_t nj_link_late_us(const struct nj_link *l, double share);

/* Prints a line of JSON. */
void nj_link_report(struct nj_link *l, FILE *to);

/* CLOCK_MONOTONIC, in ns. */
nj_ns nj_link_clock(void);

/* Measures the link's own errors, in a new network namespace. Returns the exit status. */
int nj_link_self_test(void);
