/* SPDX-License-Identifier: BSD-3-Clause */
/* What a failed open(2) of a name below the root means for a request. Pure. */
#pragma once

#include "http/files/file_ops.h"

/* The result of an OPEN or LIST whose system call failed with the errno `err`. */
enum nj_file_result nj__open_result_of_errno(int err);
