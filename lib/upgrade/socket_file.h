/* SPDX-License-Identifier: BSD-3-Clause */
/* The file of the socket that listens for other processes: does its path still lead to it? */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/socket_path.h"

struct nj_socket_file {
    const char *path; /* the caller's; NULL: there is no socket */
    struct nj_socket_path_file file;
    uint32_t n_lost; /* checks in a row that did not find it; nj_socket_file_watch() only */
};

/* Remember what the path leads to. Before the other calls. */
void nj__socket_file_remember(struct nj_socket_file *f);
/* Does the path lead to the same file? */
bool nj__socket_file_is_own(const struct nj_socket_file *f);

/* Log a warning if the path leads to another file or none, in two calls. Once a second; not while
 * another process takes new connections. One thread, which may block. */
void nj_socket_file_watch(struct nj_socket_file *f);
