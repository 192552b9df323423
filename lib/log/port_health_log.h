/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Log lines about a port: link state, dropped received packets, packets that were not sent. A state
 * machine: the caller samples the device and passes the time. One thread.
 */
#pragma once

#include "base/types.h"
#include "dpdk/port.h"
#include "log/log.h"

#define NJ_PORT_WATCH_PERIOD     (1 * NJ_SEC)  /* between two samples */
#define NJ_PORT_WATCH_LOG_GAP    (10 * NJ_SEC) /* between two lines of one reason */
#define NJ_PORT_WATCH_LINK_GRACE (5 * NJ_SEC)  /* grace period for the link after start */
#define NJ_PORT_LINE_BYTES       256u

enum nj__port_reason {
    NJ__PORT_LINK,
    NJ__PORT_MISSED,
    NJ__PORT_NOMBUF,
    NJ__PORT_RX_ERRORS,
    NJ__PORT_TX_ERRORS,
    NJ__PORT_UNSENT,
    NJ__N_PORT_REASONS
};

struct nj_port_watch {
    char name[64];
    uint32_t in_flight_max; /* packets that its transmit rings hold */
    struct nj_port_stats seen;
    bool has_seen, link_logged;          /* link_logged: the link state of the last line */
    nj_ns first_at;                      /* time of the first sample */
    uint64_t logged[NJ__N_PORT_REASONS]; /* the count of the last line */
    nj_ns logged_at[NJ__N_PORT_REASONS]; /* 0: never */
    nj_ns unsent_since; /* since when too many packets are unsent; 0: they are not */
};

void nj_port_watch_init(struct nj_port_watch *w, const char *name, uint32_t in_flight_max);
/* Take a sample, once per NJ_PORT_WATCH_PERIOD. */
void nj_port_watch_update(struct nj_port_watch *w, const struct nj_port_stats *sample, nj_ns now);
/* Format the next due line, without a newline. False: none. */
bool nj_port_watch_next_line(struct nj_port_watch *w, nj_ns now, enum nj_log *level,
                             char line[NJ_PORT_LINE_BYTES]);
