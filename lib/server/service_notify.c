/* SPDX-License-Identifier: BSD-3-Clause */
#include "server/service_notify.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/set_error.h"
#include "base/units.h"
#include "log/log.h"

/* "/path", or "@name" of the abstract namespace. */
static int parse_address(struct nj_service_notify *n, const char *text, char *why, size_t why_bytes)
{
    size_t length = strlen(text);

    n->address = (struct sockaddr_un){.sun_family = AF_UNIX};
    if ((*text != '/' && *text != '@') || length < 2 || length >= sizeof n->address.sun_path)
        return nj_set_error(why, why_bytes,
                            "NOTIFY_SOCKET=%s: expected the path of a socket, or @NAME, of at most "
                            "%zu bytes; unset it to start without a service manager",
                            text, sizeof n->address.sun_path - 1);
    memcpy(n->address.sun_path, text, length);
    if (*text == '@')
        n->address.sun_path[0] = '\0';
    n->address_bytes = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length);
    return 0;
}

/* An invalid variable leaves the watchdog off. The other messages are sent nevertheless: without
 * READY=1 the service would not start. */
static void parse_watchdog(struct nj_service_notify *n, const struct nj_service_variables *v)
{
    uint64_t usec, pid;

    if (!v->watchdog_usec)
        return;
    if (!nj_parse_decimal(v->watchdog_usec, &usec) || usec == 0 || usec > UINT64_MAX / NJ_US)
        nj_log(NJ_LEVEL_WARNING,
               "WATCHDOG_USEC=%s: expected microseconds; no messages of the watchdog are sent",
               v->watchdog_usec);
    else if (v->watchdog_pid && !nj_parse_decimal(v->watchdog_pid, &pid))
        nj_log(NJ_LEVEL_WARNING,
               "WATCHDOG_PID=%s: expected the number of a process; no messages of the watchdog are "
               "sent",
               v->watchdog_pid);
    else if (!v->watchdog_pid || pid == (uint64_t)getpid())
        n->watchdog_period = usec * NJ_US / 2; /* as sd_watchdog_enabled(3) recommends */
}

int nj_service_notify_open(struct nj_service_notify *n, const struct nj_service_variables *v,
                           char *why, size_t why_bytes)
{
    *n = (struct nj_service_notify){.fd = -1, .lock = PTHREAD_MUTEX_INITIALIZER};
    if (!v->notify_socket || !*v->notify_socket)
        return 0;
    if (parse_address(n, v->notify_socket, why, why_bytes) != 0)
        return -1;
    parse_watchdog(n, v);
    n->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (n->fd < 0)
        return nj_set_error(why, why_bytes, "a socket for NOTIFY_SOCKET: %s", strerror(errno));
    return 0;
}

void nj_service_notify_close(struct nj_service_notify *n)
{
    if (n->fd >= 0)
        close(n->fd);
    n->fd = -1;
}

/* A newline in the value, e.g. of a path, would begin another field. */
static void clean_status(char *text)
{
    char *status = strstr(text, "STATUS=");

    for (char *p = status ? status : ""; *p; p++)
        if ((unsigned char)*p < ' ' || *p == '\x7f')
            *p = ' ';
}

/* False: the manager does not read, and its socket is full. */
static bool send_once(struct nj_service_notify *n, const char *text, size_t bytes)
{
    if (sendto(n->fd, text, bytes, MSG_NOSIGNAL | MSG_DONTWAIT,
               (const struct sockaddr *)&n->address, n->address_bytes) >= 0)
        return true;
    int err = errno;
    if (err == EAGAIN || err == ENOBUFS)
        return false;
    if (!atomic_exchange(&n->has_failed, true))
        nj_log(NJ_LEVEL_WARNING,
               "the service manager gets no messages: its socket (NOTIFY_SOCKET): %s",
               strerror(err));
    return true;
}

/* False: some still wait. */
static bool send_waiting(struct nj_service_notify *n)
{
    uint32_t n_sent = 0;

    while (n_sent < n->n_waiting && send_once(n, n->waiting[n_sent], n->n_bytes[n_sent]))
        n_sent++;
    n->n_waiting -= n_sent;
    if (n->n_waiting == 0)
        return true;
    memmove(n->waiting[0], n->waiting[n_sent], n->n_waiting * sizeof n->waiting[0]);
    memmove(&n->n_bytes[0], &n->n_bytes[n_sent], n->n_waiting * sizeof n->n_bytes[0]);
    return false;
}

static void keep(struct nj_service_notify *n, const char *text, size_t bytes)
{
    uint32_t at = nj_min_u32(n->n_waiting, NJ_SERVICE_NOTIFY_WAITING - 1);

    memcpy(n->waiting[at], text, bytes);
    n->n_bytes[at] = (uint32_t)bytes;
    n->n_waiting = at + 1;
}

void nj_service_notify_send(struct nj_service_notify *n, const char *format, ...)
{
    char text[NJ_SERVICE_NOTIFY_BYTES];
    va_list arguments;

    if (n->fd < 0)
        return;
    va_start(arguments, format);
    int length = vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (length < 0)
        return;
    clean_status(text);
    size_t bytes = (size_t)length < sizeof text ? (size_t)length : sizeof text - 1;
    pthread_mutex_lock(&n->lock);
    if (!send_waiting(n) || !send_once(n, text, bytes))
        keep(n, text, bytes);
    pthread_mutex_unlock(&n->lock);
}

void nj_service_notify_retry(struct nj_service_notify *n)
{
    if (n->fd < 0)
        return;
    pthread_mutex_lock(&n->lock);
    (void)send_waiting(n);
    pthread_mutex_unlock(&n->lock);
}

bool nj_service_watchdog_is_due(const struct nj_service_notify *n, nj_ns now)
{
    return n->fd >= 0 && n->watchdog_period > 0 && now >= n->watchdog_due_at;
}

void nj_service_watchdog_send(struct nj_service_notify *n, nj_ns now)
{
    static const char text[] = "WATCHDOG=1";

    pthread_mutex_lock(&n->lock);
    if (send_waiting(n) && send_once(n, text, sizeof text - 1))
        n->watchdog_due_at = now + n->watchdog_period;
    pthread_mutex_unlock(&n->lock);
}
