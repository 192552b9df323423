/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sockets of unix(7) that have a path: connected to, made, and recognised again. Nothing but a
 * socket is ever replaced. Threads that may make system calls; one at a time for a path.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

/* Longest path, without the zero at the end. */
#define NJ_SOCKET_PATH_MAX 107u

/* Connect to the socket of this type (SOCK_STREAM, ...) at `path`. Connecting, sending and
 * receiving wait for at most `wait_s` seconds. Returns the descriptor; -1 if no process listens
 * there; -2 if errno has another reason, ENOTSOCK if something else than a socket is there. */
int nj_socket_path_connect(const char *path, int type, int wait_s);

/* A socket that listens at `path`, with the mode 0600 and without O_NONBLOCK unless `type` has
 * SOCK_NONBLOCK. Replaces a socket that is there: the caller knows that nobody needs it.
 * -1: errno has the reason, ENOTSOCK if something else is there. */
int nj_socket_path_listen(const char *path, int type, int backlog);

/* Is something else than a socket there? A link is none, even to a socket: bind(2) does not follow
 * it. */
bool nj_socket_path_is_other_file(const char *path);

/* What a path leads to. */
struct nj_socket_path_file {
    dev_t dev;
    ino_t ino;
};

/* fstat(2) of the descriptor has another number. */
void nj_socket_path_remember(const char *path, struct nj_socket_path_file *f);
/* Does the path lead to the same file? Else a link on the path was replaced, or another process has
 * made its socket there. */
bool nj_socket_path_is_same(const char *path, const struct nj_socket_path_file *f);
