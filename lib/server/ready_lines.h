/* SPDX-License-Identifier: BSD-3-Clause */
/* What a server says about itself when it is ready. */
#pragma once

#include "server/ports.h"
#include "topo/place.h"

/* Write the addresses and what is served: "ready: http://192.0.2.1:80/ serves /srv". Cut. */
void nj__ready_format(const struct nj_ports *ports, const struct nj_settings *settings, char *text,
                      size_t n);
/* Log a line for each port and the ready line. Main thread. */
void nj__ready_log(const struct nj_ports *ports, const struct nj_shards *shards,
                   const struct nj_settings *settings);
/* Log which EAL arguments would place lcores better, if there are any. `cpus`: the allowed ones.
 * Main thread. */
void nj__ready_log_advice(const struct nj_ports *ports, const struct nj_placement *place,
                          const cpu_set_t *cpus);
