/* SPDX-License-Identifier: BSD-3-Clause */
/* Two ports, a pipe each way, and the loop that moves frames between them in real time. */
#ifndef NJ_PERF_LINK_LINK_H
#define NJ_PERF_LINK_LINK_H

#include <stdatomic.h>
#include <stdio.h>

#include "pipe.h"
#include "port.h"

#define NJ_LATE_BUCKETS 20000u /* of a microsecond; the last takes all that is later */

struct nj_link {
    struct nj_port port[2];
    struct nj_pipe pipe[2]; /* pipe[i] carries what port[i] received */
    nj_ns spin;             /* before a frame is due, stay awake for so long */
    nj_ns quiet;            /* after the request to stop: end when nothing came for so long */
    _Atomic bool stop;
    uint64_t late[NJ_LATE_BUCKETS], n_late; /* how much too late frames left */
};

/* Runs until `stop` is set and the link is empty and quiet, at most NJ_LINK_STOP_MAX longer. */
#define NJ_LINK_STOP_MAX (3 * NJ_SEC)
void nj_link_run(struct nj_link *l);

/* Lateness below which `share` of the frames left, in microseconds. */
uint32_t nj_link_late_us(const struct nj_link *l, double share);

/* One JSON object, on one line. */
void nj_link_report(struct nj_link *l, FILE *to);

nj_ns nj_link_clock(void);

/* Measures the link's own errors, in a network namespace made for it. The exit status. */
int nj_link_self_test(void);

#endif
