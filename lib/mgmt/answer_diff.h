/* SPDX-License-Identifier: BSD-3-Clause */
/* GET /api/v1/diff: the files of the configuration against what runs. */
#pragma once

#include <stdio.h>

#include "mgmt/view.h"

/* Writes the document, and returns the status: 422 if the files have errors. The time is that of a
 * reload. Management thread. */
unsigned nj__mgmt_write_diff(const struct nj_mgmt_view *v, FILE *out);
