/* SPDX-License-Identifier: BSD-3-Clause */
/* A document as an answer of DPDK's telemetry. */
#pragma once

#include "mgmt/document.h"

struct rte_tel_data;

/* Fill the answer of a callback of rte_telemetry with a document in one of its forms. What it has
 * no room or no memory for is dropped: the commands keep its bounds. */
void nj__document_to_telemetry(const struct nj__document *doc, struct rte_tel_data *to);
