/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What management has changed at run time, for the process that takes new connections next: blocks
 * and limits, as lines of text in a memfd_create(2). A descriptor more beside a message of an
 * upgrade (upgrade/messages.h) is closed unread by versions before this record.
 *
 *   nightjar changes 1
 *   block 198.18.0.0/24 600                          seconds left; 0: no end
 *   limit 9ae16a3b2f90404f class=a,rate=1MiB/s,for=7200s
 *
 * The number is of what the file said of the limit (nj_limit_change_file_hash()): the changes of
 * limits that the next process's file has otherwise end, as with a reload. Lines of other kinds are
 * left out, so that later versions can add some.
 */
#pragma once

#include <stddef.h>

#include "config/policy_snapshots.h"

/* Returns a descriptor for the caller to close, or -1: no memory. Any thread but an lcore. */
int nj_mgmt_write_changes(struct nj_policies *p, nj_ns now);
/* Put them in force in place of those of this process, with a line in the log. False: nothing
 * has changed, since it is none, or no memory. Any thread but an lcore. */
bool nj_mgmt_read_changes(struct nj_policies *p, int fd, nj_ns now);
