/* SPDX-License-Identifier: BSD-3-Clause */
/* The link between server and client. */
#pragma once

#include <rte_mbuf.h>

#include "channel.h"

struct sim;

enum sim_side { SIM_SERVER, SIM_CLIENT };

/* Send a copy of `m` at that time. */
void nj_sim_link_send(struct sim *sim, enum sim_side from, const struct rte_mbuf *m, nj_ns at);
