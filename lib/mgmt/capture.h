/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A capture of packets for a client of the management listener, as a pcapng file: an interface for
 * each port, packets of both directions, and at the end how many were lost. One at a time. The
 * management thread, except new and free.
 */
#pragma once

#include "dpdk/packet_capture.h"
#include "mgmt/lcore_taps.h"

#define NJ__CAPTURE_PACKETS     1000000u /* by default */
#define NJ__CAPTURE_PACKETS_MAX 100000000u

struct nj_mgmt_capture;

/* `view` outlives it. NULL: no memory. Main thread. */
struct nj_mgmt_capture *nj_mgmt_capture_new(const struct nj_mgmt_view *view);
/* When the lcores have ended. */
void nj_mgmt_capture_free(struct nj_mgmt_capture *c);

struct nj__capture_options {
    struct nj_net of; /* 0 bits: any packet */
    int port;         /* DPDK port; -1: all */
    uint32_t snaplen; /* bytes, or NJ_CAPTURE_HEADERS */
    uint32_t seconds;
    uint64_t n_packets;
};
/* The status of HTTP: 200, with *stream; else a reason. */
unsigned nj__capture_begin(struct nj_mgmt_capture *c, const struct nj__capture_options *options,
                           struct nj__mgmt_stream *stream, const char **why);
bool nj__capture_end(struct nj_mgmt_capture *c);
/* nj__taps_tick() */
bool nj__capture_tick(struct nj_mgmt_capture *c);
