/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The sockets of the management listener. In an upgrade the new process gets them with the port:
 * its Unix socket has another name first, and is renamed to the path; its TCP sockets are bound
 * beside those of the running process, which listen no longer when that one yields.
 *
 * The main thread, unless a function says something else. Those that return int return 0, or -1
 * with the reason and the remedy in `why`.
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include <nightjar/server.h>

#include "base/socket_path.h"
#include "config/management_address.h"

struct nj_mgmt_tcp_socket {
    int fd; /* -1: not open */
    const struct nj_management_address *address;
};

struct nj_mgmt_sockets {
    const char *path;   /* of the Unix socket, the caller's; NULL: none */
    bool is_default;    /* nobody asked for this path: the server starts without it, too */
    bool is_taken_over; /* in an upgrade */
    pid_t taken_from;   /* that process, as seen from here */
    int unix_fd;        /* -1: none */
    int wake_fd;        /* eventfd(2): wakes the thread that serves them; -1: not open */
    char made_at[NJ_SOCKET_PATH_MAX + 1];
    uint32_t n_tcp;
    struct nj_mgmt_tcp_socket tcp[NJ_SERVER_MANAGEMENT_MAX];

    pthread_mutex_t lock; /* of what follows */
    bool is_published;    /* `file` is at the path */
    struct nj_socket_path_file file;
    uint32_t n_lost; /* checks in a row that did not find it */
    int repaired_fd; /* in place of unix_fd from now on; -1: none */
};

void nj_mgmt_sockets_init(struct nj_mgmt_sockets *s, const char *path, bool is_default);

/* Bind TCP sockets at the `n` addresses, which the caller keeps. `is_shared`: beside those of the
 * process that this one takes over from; `may_be_shared`: another one may take over. Before
 * privileges are given up: ports below 1024. */
int nj_mgmt_sockets_bind_tcp(struct nj_mgmt_sockets *s, const struct nj_management_address *address,
                             uint32_t n, bool is_shared, bool may_be_shared, char *why,
                             size_t why_bytes);
/* Make the folder of the path for this user, if it is missing, and the folder above it belongs to
 * root alone. As root, before privileges are given up. An error is that of the next function. */
void nj_mgmt_sockets_make_folder(const struct nj_mgmt_sockets *s, uid_t uid, gid_t gid);

/* Make what wakes the thread that serves them: before an upgrade begins, which could not be undone
 * if there were none. */
int nj_mgmt_sockets_open_wake(struct nj_mgmt_sockets *s, char *why, size_t why_bytes);
/* Make the Unix socket under another name, as the server's user; `user` is the name for messages,
 * or "". The path may be that of no other process, except the one that this one takes over from. A
 * path that cannot be used is no error if it is the default: a line of the log says why. */
int nj_mgmt_sockets_bind_unix(struct nj_mgmt_sockets *s, const char *user, char *why,
                              size_t why_bytes);

/* Give the Unix socket its name, and listen at the TCP sockets. */
int nj_mgmt_sockets_publish(struct nj_mgmt_sockets *s, char *why, size_t why_bytes);

/* Is there a socket? */
bool nj_mgmt_sockets_has_any(const struct nj_mgmt_sockets *s);
/* Wake the thread that serves them. Any thread, between nj_mgmt_sockets_open_wake() and
 * nj_mgmt_sockets_close(). */
void nj_mgmt_sockets_wake(struct nj_mgmt_sockets *s);

/* If the path leads nowhere any more, in two calls, make the socket again, and wake the thread: a
 * process that took over has ended, or somebody removed the file. Once a second; not while another
 * process takes new connections. One thread, which may block; also after nj_mgmt_sockets_close(),
 * when it does nothing. */
void nj_mgmt_sockets_repair(struct nj_mgmt_sockets *s);
/* Use the socket that was made again, if there is one. The thread that serves them. */
void nj_mgmt_sockets_take_repaired(struct nj_mgmt_sockets *s);

/* Close all, and remove the Unix socket if the path leads to it. When no other thread serves them.
 * Twice is once. */
void nj_mgmt_sockets_close(struct nj_mgmt_sockets *s);
