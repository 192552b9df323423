/* SPDX-License-Identifier: BSD-3-Clause */
/* Registers the commands of answers.h with rte_telemetry. */
#pragma once

#include "mgmt/view.h"

/* Attach the commands to the view of a server, which lives until the next call. After NULL they
 * return empty dictionaries. Main thread. */
void nj_telemetry_attach(const struct nj_mgmt_view *view);
