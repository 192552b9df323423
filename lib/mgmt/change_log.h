/* SPDX-License-Identifier: BSD-3-Clause */
/* A line of the log for each request that may change something: what, from whom, and the status. */
#pragma once

#include <microhttpd.h>
#include <stdbool.h>

/* `is_unix`: the connection is one of the Unix socket, whose peer the kernel names. `what`: the
 * body, or the query; it is cut after 255 bytes. The management thread. */
void nj__mgmt_log_change(struct MHD_Connection *c, bool is_unix, const char *method,
                         const char *path, const char *what, unsigned status);
