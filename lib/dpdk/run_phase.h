/* SPDX-License-Identifier: BSD-3-Clause */
/* What all lcores do: serve, in an upgrade beside another process (shard/port_role.c), or end. */
#pragma once

enum nj_run_phase {
    NJ_PHASE_START, /* no lcore runs yet */
    NJ_PHASE_RUN,
    NJ_PHASE_KEEP,  /* NJ_PORT_KEEPS: another process shares the port */
    NJ_PHASE_TAKE,  /* NJ_PORT_TAKES */
    NJ_PHASE_YIELD, /* NJ_PORT_YIELDS: send GOAWAY, finish running requests */
    NJ_PHASE_DRAIN, /* send GOAWAY, finish running requests */
    NJ_PHASE_ABORT, /* reset the remaining connections */
    NJ_PHASE_STOP,  /* leave the loop */
};
