/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The notification protocol of service managers, sd_notify(3): datagrams of lines "NAME=VALUE" to
 * the AF_UNIX socket whose address is in NOTIFY_SOCKET. The manager promises that the protocol is
 * stable. libsystemd is not used: it opens a socket for each message, which the server's system
 * call filter would have to allow, and it brings three compression libraries into the process.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/types.h"

#define NJ_SERVICE_NOTIFY_BYTES   2048u /* of a message; a longer one is cut */
/* Messages that wait until the manager reads. When they are as many, the last one is replaced. */
#define NJ_SERVICE_NOTIFY_WAITING 8u

struct nj_service_notify {
    int fd; /* -1: there is no manager, or nj_service_notify_open() was not called */
    struct sockaddr_un address;
    socklen_t address_bytes;
    pthread_mutex_t lock; /* of what waits; held for no call that blocks */
    uint32_t n_waiting;
    uint32_t n_bytes[NJ_SERVICE_NOTIFY_WAITING];
    char waiting[NJ_SERVICE_NOTIFY_WAITING][NJ_SERVICE_NOTIFY_BYTES];
    _Atomic bool has_failed; /* a failure was logged */
    nj_ns watchdog_period;   /* time between two messages of the watchdog; 0: none are expected */
    nj_ns watchdog_due_at;   /* one thread only */
};

/* The variables of the environment; each may be NULL. */
struct nj_service_variables {
    const char *notify_socket; /* NOTIFY_SOCKET */
    const char *watchdog_usec; /* WATCHDOG_USEC: the manager's time-out, in microseconds */
    const char *watchdog_pid;  /* WATCHDOG_PID: the process that it is for */
};

/* Open the socket, while this is still allowed. Without NOTIFY_SOCKET nothing is opened, and no
 * message is sent.
 * Errors: in `why`: an address that is not of AF_UNIX, no descriptor left. Variables of the
 * watchdog that are no numbers switch it off, with a warning in the log. Returns 0 or -1. */
int nj_service_notify_open(struct nj_service_notify *n, const struct nj_service_variables *v,
                           char *why, size_t why_bytes);
void nj_service_notify_close(struct nj_service_notify *n);

/* Send a message of lines, of which STATUS= is the last: control characters in its value become
 * spaces. Never blocks: while the manager does not read, messages wait in their order, and the next
 * call of this function or of nj_service_notify_retry() sends them. Any thread. The first failure
 * is logged. */
void nj_service_notify_send(struct nj_service_notify *n, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Send what waits. Any thread; the supervisor, once per tick. */
void nj_service_notify_retry(struct nj_service_notify *n);

/* Is a message of the watchdog due? One thread only. */
bool nj_service_watchdog_is_due(const struct nj_service_notify *n, nj_ns now);
/* Send it, unless the manager does not read: then it stays due. One thread only. */
void nj_service_watchdog_send(struct nj_service_notify *n, nj_ns now);
