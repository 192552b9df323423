/* SPDX-License-Identifier: BSD-3-Clause */
/* Routes of captures and traces. The management thread. */
#pragma once

#include "mgmt/routes.h"

/* GET /api/v1/capture?client=&port=&snaplen=&seconds=&packets= */
unsigned nj__route_capture(struct nj__mgmt_request *r, FILE *out);
/* GET /api/v1/trace?client=&seconds=&requests= */
unsigned nj__route_trace(struct nj__mgmt_request *r, FILE *out);
/* POST .../end: the file of the client that has it ends, completely. */
unsigned nj__route_capture_end(struct nj__mgmt_request *r, FILE *out);
unsigned nj__route_trace_end(struct nj__mgmt_request *r, FILE *out);
