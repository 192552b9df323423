/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One end of a link: a packet socket (AF_PACKET) on a network interface.
 *
 * The kernel puts arriving frames into a ring, with timestamps. So a late wake-up or a late read
 * does not change the time from which the link's delay counts.
 */
#pragma once

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
    uint32_t n_bytes; /* length on the wire; more than `n_held` if the frame was truncated */
    uint32_t n_held;
    nj_ns stamp; /* CLOCK_REALTIME */
};

/* Opens interface `name`, which must outlive the port. False: failed; errno is set. */
bool nj_port_open(struct nj_port *p, const char *name);
void nj_port_close(struct nj_port *p);

/* Returns the next frame, valid until nj_port_release(). False: no frame has arrived. */
bool nj_port_peek(struct nj_port *p, struct nj_port_frame *frame);
void nj_port_release(struct nj_port *p);

/* A failure increments send_failed. */
void nj_port_send(struct nj_port *p, const void *bytes, uint32_t n_bytes);

/* Frames for which the ring had no room since the last call. */
uint32_t nj_port_overruns(struct nj_port *p);
