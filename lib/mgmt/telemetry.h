/* SPDX-License-Identifier: BSD-3-Clause */
/* Registers the commands of telemetry_commands.h with rte_telemetry. */
#ifndef NJ_MGMT_TELEMETRY_H
#define NJ_MGMT_TELEMETRY_H

#include "mgmt/view.h"

/* Attach the commands to the view of a server, which lives until the next call. After NULL they
 * return empty dictionaries. Main thread. */
void nj_telemetry_attach(const struct nj_mgmt_view *view);

#endif
