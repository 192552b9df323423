/* SPDX-License-Identifier: BSD-3-Clause */
/* Routes of the simulated server, for seeds with HTTP/1: POST of /echo and /echo-trailer. */
#pragma once

#include "http/handlers/route_table.h"

struct nj_routes *nj_sim_routes_new(void);
