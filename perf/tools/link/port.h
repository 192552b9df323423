/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One end of a link: a packet socket on an interface that the kernel keeps.
 *
 * Frames come through a ring that the kernel fills and stamps when they come, so that being woken
 * late, or reading late, does not move the time from which the link's delay counts.
 */
#ifndef NJ_PERF_LINK_PORT_H
#define NJ_PERF_LINK_PORT_H

#include "base/types.h"

struct nj_port {
    int fd;
    uint8_t *ring;
    uint32_t next; /* slot */
    const char *name;
    uint64_t send_failed;
};

struct nj_port_frame {
    const uint8_t *bytes;
    uint32_t n_bytes; /* as long as it was on the wire; more than `n_held` if it did not fit */
    uint32_t n_held;
    nj_ns stamp; /* CLOCK_REALTIME */
};

/* False with errno set. `name` stays the caller's. */
bool nj_port_open(struct nj_port *p, const char *name);
void nj_port_close(struct nj_port *p);

/* The next frame, valid until nj_port_release(). False when there is none now. */
bool nj_port_peek(struct nj_port *p, struct nj_port_frame *frame);
void nj_port_release(struct nj_port *p);

void nj_port_send(struct nj_port *p, const void *bytes, uint32_t n_bytes);

/* Frames that the kernel had no room for since the last question. */
uint32_t nj_port_overruns(struct nj_port *p);

#endif
