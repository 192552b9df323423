/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Checks of the segments that a sender sends, based only on what it sent before and what was
 * delivered to it. One per direction of a flow.
 */
#pragma once

#include "base/types.h"
#include "raw.h"

struct tsim;
struct tsim_flow;

#define TSIM_SENDS_MAX 256u
#define TSIM_SACKS_MAX 32u

struct tsim_span {
    uint32_t first, end;
};

struct tsim_send {
    uint32_t first, end;
    nj_ns at;
};

struct tsim_track {
    bool syn, fin;  /* sent */
    bool peer_done; /* the peer's FIN was delivered, before the ports were reused */
    bool again;     /* second connection of these ports */
    uint32_t iss;
    uint32_t max;       /* one after the last sequence number sent */
    uint32_t last_ack;  /* sent */
    uint32_t told_edge; /* right edge advertised to the peer */
    bool acked_any;     /* last_ack and told_edge are set */
    bool offers_scale, offers_sack;
    uint8_t shift; /* scale of the windows it sends */
    /* Delivered to it. */
    bool peer_syn;
    bool peer_scales, peer_sacks;
    uint8_t peer_shift;
    uint16_t peer_mss;
    uint32_t una;  /* highest ACK */
    uint32_t edge; /* the furthest right edge */
    uint32_t n_sacked;
    struct tsim_span sacked[TSIM_SACKS_MAX];
    /* The last data segments. */
    uint32_t n_sends;
    struct tsim_send send[TSIM_SENDS_MAX];
};

/* `from` sends this segment. True if it has bytes that were never sent before. */
bool nj_tsim_track_sent(struct tsim_flow *f, unsigned from, const uint8_t *frame,
                        const struct sim_raw *r);
/* This segment is delivered to `to`. */
void nj_tsim_track_came(struct tsim_flow *f, unsigned to, const uint8_t *frame,
                        const struct sim_raw *r);
