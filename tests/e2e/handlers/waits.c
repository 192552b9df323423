/* SPDX-License-Identifier: BSD-3-Clause */
#include "waits.h"

#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define LATER_NS 50000000L /* lcores sleep after a millisecond without work */

/* What the thread does: it sets the event, or writes to the descriptor. */
struct order {
    struct nj_event *event; /* NULL: the descriptor */
    int fd;
};

static int orders[2]; /* a pipe */

static void *serve_orders(void *none)
{
    struct timespec later = {0, LATER_NS};
    struct order o;

    while (read(orders[0], &o, sizeof o) == sizeof o) {
        nanosleep(&later, NULL);
        if (o.event)
            nj_event_set(o.event);
        else
            (void)!write(o.fd, "x", 1);
    }
    return none;
}

void waits_start(void)
{
    pthread_t thread;

    if (pipe(orders) != 0 || pthread_create(&thread, NULL, serve_orders, NULL) != 0)
        abort();
}

static void order(struct nj_event *event, int fd)
{
    const struct order o = {event, fd};
    (void)!write(orders[1], &o, sizeof o);
}

static void answer(struct nj_response *resp, int error)
{
    const char *text = error == 0 ? "done\n" : nj_strerror(error);

    nj_response_status(resp, error == 0 ? 200 : 500);
    nj_response_write(resp, text, strlen(text));
}

void await_event(struct nj_request *req, struct nj_response *resp, void *arg)
{
    struct nj_event event = {0};

    (void)req;
    (void)arg;
    order(&event, -1);
    answer(resp, nj_await(&event, 0));
}

void await_fd(struct nj_request *req, struct nj_response *resp, void *arg)
{
    int pair[2], rc;
    char byte;

    (void)req;
    (void)arg;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair) != 0) {
        answer(resp, NJ_ERR_MEMORY);
        return;
    }
    order(NULL, pair[1]);
    rc = nj_await_fd(pair[0], POLLIN, 0);
    if (rc > 0)
        rc = rc == POLLIN && read(pair[0], &byte, 1) == 1 ? 0 : NJ_ERR_INVALID;
    close(pair[0]);
    close(pair[1]);
    answer(resp, rc);
}

/* Until the client leaves. */
void await_nothing(struct nj_request *req, struct nj_response *resp, void *arg)
{
    struct nj_event event = {0};

    (void)req;
    (void)arg;
    answer(resp, nj_await(&event, 0));
}

static void sleep_in_kernel(void *lcore)
{
    struct timespec later = {0, LATER_NS};

    *(unsigned *)lcore = nj_lcore_id();
    nanosleep(&later, NULL);
}

void call_on_worker(struct nj_request *req, struct nj_response *resp, void *arg)
{
    unsigned lcore = 0;
    int rc = nj_call_on_worker(sleep_in_kernel, &lcore);

    (void)req;
    (void)arg;
    answer(resp, rc == 0 && lcore != UINT_MAX ? NJ_ERR_INVALID : rc);
}
