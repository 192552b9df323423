/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The present rate of transfers, from the snapshots of them that management takes anyway: the bytes
 * since an earlier one, of at least half a second before. The datapath keeps no rates. A bounded
 * table has the earlier values; a transfer that it has no room for has its average rate.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "conn/transfers.h"

struct nj_transfer_rates;

/* NULL when memory is refused. */
struct nj_transfer_rates *nj_transfer_rates_new(void);
void nj_transfer_rates_free(struct nj_transfer_rates *r);

/* The rate of a transfer of a snapshot, in bytes per second, and notes its bytes for later ones.
 * `taken_at`: time of the snapshot. *is_average: it was not in an earlier snapshot, so this is the
 * average since its request arrived. One thread at a time. */
uint64_t nj_transfer_rates_note(struct nj_transfer_rates *r, const struct nj_transfer *t,
                                nj_ns taken_at, bool *is_average);
