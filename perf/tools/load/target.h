/* SPDX-License-Identifier: BSD-3-Clause */
/* The server that a URL names. Main thread. */
#pragma once

#include <stddef.h>

#include "options.h"

/* Reads scheme, host and port. *path: the path of the URL, or "/". Returns 0, or -1 with the reason
 * in `why`. */
int load_target_read(struct load_options *o, const char *url, const char **path, char *why,
                     size_t n);

/* Looks the name up, as the system's getaddrinfo(3) does. Returns 0, or -1 with the reason. */
int load_target_look_up(struct load_options *o, char *why, size_t n);
