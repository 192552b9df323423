/* SPDX-License-Identifier: BSD-3-Clause */
/* What request_trace.c uses of transfers.c. On the lcore. */
#pragma once

#include "base/str.h"
#include "conn/transfers.h"

struct nj_txn;

/* The open request at a place; NULL: there is none, or it is about to end. */
struct nj_txn *nj__transfer_running_at(const struct nj_conns *cs, uint32_t place);
/* Why an open request is not faster, while nj_shape_is_migrated(). */
enum nj_why nj__transfer_why(const struct nj_txn *t);
/* Sets n_path, path and is_path_cut. */
void nj__transfer_set_path(const struct nj_txn *t, struct nj_transfer *out);
/* The query may have what is not for everyone who may read a list of transfers. */
struct nj_str nj__transfer_path_without_query(struct nj_str path);
