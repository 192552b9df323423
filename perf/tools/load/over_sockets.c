/* SPDX-License-Identifier: BSD-3-Clause */
/* Connections of a crowd over sockets of the kernel, which epoll(7) watches. */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/relaxed_atomics.h"
#include "transport.h"

#define EVENTS_MAX 256
#define READ_BYTES (128u * 1024u) /* of a connection at a time */
#define REST_BYTES (32u * 1024u)  /* longer than a record of TLS */
#define WAIT_MAX   NJ_MS          /* until the phase is looked at again */

struct load_sockets {
    int epoll;
    struct nj_list again;
    uint8_t in[REST_BYTES + READ_BYTES];
};

struct load_sockets *load_sockets_new(void)
{
    struct load_sockets *s = calloc(1, sizeof *s);

    if (!s)
        return NULL;
    nj_list_init(&s->again);
    s->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (s->epoll >= 0)
        return s;
    free(s);
    return NULL;
}

void load_sockets_free(struct load_sockets *s)
{
    if (s)
        close(s->epoll);
    free(s);
}

static void come_again(struct client *k)
{
    if (!nj_list_linked(&k->socket.again))
        nj_list_push_back(&k->crowd->sockets->again, &k->socket.again);
}

/* Its event follows in the next step, as with nightjar's TCP. */
static void die(struct client *k, int error)
{
    k->error = error;
    k->socket.over = true;
    come_again(k);
}

static bool watch(struct client *k, int operation, uint32_t events)
{
    struct epoll_event e = {.events = events, .data.ptr = k};
    return epoll_ctl(k->crowd->sockets->epoll, operation, k->socket.fd, &e) == 0;
}

static socklen_t address(const struct load_options *o, const struct nj_addr *to,
                         struct sockaddr_storage *out)
{
    struct sockaddr_in *v4 = (struct sockaddr_in *)out;
    struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)out;

    *out = (struct sockaddr_storage){.ss_family = nj_addr_is_v4(to) ? AF_INET : AF_INET6};
    if (nj_addr_is_v4(to)) {
        v4->sin_port = htons(o->port);
        memcpy(&v4->sin_addr, to->b + 12, sizeof v4->sin_addr);
        return sizeof *v4;
    }
    v6->sin6_port = htons(o->port);
    memcpy(&v6->sin6_addr, to->b, sizeof v6->sin6_addr);
    return sizeof *v6;
}

static bool connect_one(struct client *k, nj_ns now)
{
    const struct load_options *o = k->crowd->o;
    struct load_socket *s = &k->socket;
    struct sockaddr_storage to;
    socklen_t n = address(o, &o->to[k->crowd->to_next], &to);
    const int one = 1;

    (void)now;
    *s = (struct load_socket){
        .fd = socket(to.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_TCP)};
    nj_list_init(&s->again);
    if (s->fd >= 0)
        setsockopt(s->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    if (s->fd < 0 || (connect(s->fd, (struct sockaddr *)&to, n) != 0 && errno != EINPROGRESS) ||
        !watch(k, EPOLL_CTL_ADD, EPOLLIN | EPOLLOUT))
        die(k, errno);
    return true;
}

static uint32_t room(const struct client *k)
{
    return k->socket.connected && !k->socket.full && !k->socket.over ? UINT32_MAX : 0;
}

static uint32_t send_some(struct client *k, const uint8_t *data, uint32_t n)
{
    struct load_socket *s = &k->socket;

    if (room(k) == 0)
        return 0;
    ssize_t sent = send(s->fd, data, n, MSG_NOSIGNAL);
    if (sent < 0 && errno != EAGAIN && errno != EINTR) {
        die(k, errno);
        return 0;
    }
    sent = sent < 0 ? 0 : sent;
    s->full = (uint32_t)sent < n;
    if (s->full)
        watch(k, EPOLL_CTL_MOD, EPOLLIN | EPOLLOUT);
    else if (k->crowd->plan.upload_bytes)
        come_again(k); /* a body may go on */
    return (uint32_t)sent;
}

static uint32_t next(const struct client *k, const uint8_t **data)
{
    *data = k->socket.in;
    return k->socket.n_in;
}

static uint32_t peek(const struct client *k, uint32_t n, struct nj_tls_src *out, uint32_t n_max)
{
    if (n > k->socket.n_in || n_max == 0)
        return 0;
    out[0] = (struct nj_tls_src){k->socket.in, n};
    return 1;
}

static void take(struct client *k, uint32_t n)
{
    k->socket.in += n;
    k->socket.n_in -= n;
}

static void close_one(struct client *k, nj_ns now)
{
    (void)now;
    shutdown(k->socket.fd, SHUT_WR);
    if (k->socket.fin)
        die(k, 0);
}

static void abort_one(struct client *k, nj_ns now)
{
    const struct linger reset = {.l_onoff = 1};

    (void)now;
    setsockopt(k->socket.fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
    die(k, 0);
}

static void release(struct client *k, nj_ns now)
{
    struct load_socket *s = &k->socket;
    struct tcp_info info = {.tcpi_total_retrans = 0};
    socklen_t n = sizeof info;

    (void)now;
    if (s->fd >= 0 && getsockopt(s->fd, IPPROTO_TCP, TCP_INFO, &info, &n) == 0)
        nj_add_single_writer(&k->crowd->retransmits, info.tcpi_total_retrans);
    if (s->fd >= 0)
        close(s->fd);
    nj_list_del(&s->again);
    free(s->rest);
    *s = (struct load_socket){.fd = -1};
    nj_list_init(&s->again);
}

/* Keeps what the client has not taken, which is part of a record. False: there is no memory. */
static bool keep_rest(struct load_socket *s)
{
    uint8_t *rest = NULL;

    if (s->n_in > 0 && !s->over) {
        rest = malloc(s->n_in);
        if (!rest)
            return false;
        memcpy(rest, s->in, s->n_in);
    }
    free(s->rest);
    s->rest = rest;
    s->n_rest = rest ? s->n_in : 0;
    s->n_in = 0;
    return true;
}

static void receive(struct client *k, nj_ns now)
{
    struct load_socket *s = &k->socket;
    uint8_t *in = k->crowd->sockets->in;

    ssize_t n = recv(s->fd, in + s->n_rest, READ_BYTES, 0);
    if (n < 0) {
        if (errno != EAGAIN && errno != EINTR)
            die(k, errno);
        return;
    }
    if (s->n_rest > 0)
        memcpy(in, s->rest, s->n_rest);
    s->fin = n == 0;
    s->in = in;
    s->n_in = s->n_rest + (uint32_t)n;
    crowd_on_event(k, s->fin ? LOAD_EV_PEER_FIN : 0, now);
    if (!keep_rest(s))
        abort_one(k, now);
}

/* The connection is made, or it failed. */
static void connected(struct client *k, nj_ns now)
{
    int error = 0;
    socklen_t n = sizeof error;

    if (getsockopt(k->socket.fd, SOL_SOCKET, SO_ERROR, &error, &n) != 0)
        error = errno;
    if (error == 0 && !watch(k, EPOLL_CTL_MOD, EPOLLIN))
        error = errno;
    if (error != 0) {
        die(k, error);
        return;
    }
    k->socket.connected = true;
    crowd_on_event(k, LOAD_EV_OPENED, now);
}

static void on_kernel_event(struct client *k, uint32_t events, nj_ns now)
{
    struct load_socket *s = &k->socket;

    if (!s->over && !s->connected) {
        connected(k, now);
        return; /* epoll reports bytes again */
    }
    if (!s->over && events & EPOLLOUT && s->full && watch(k, EPOLL_CTL_MOD, EPOLLIN)) {
        s->full = false;
        come_again(k);
    }
    if (!s->over && events & (EPOLLIN | EPOLLHUP | EPOLLERR) && !s->fin)
        receive(k, now);
}

/* The next request is due by then, or the phase may have changed. */
static void wait_for_events(struct crowd *c, nj_ns now)
{
    struct pollfd p = {.fd = c->sockets->epoll, .events = POLLIN};
    nj_ns ns = WAIT_MAX;

    if (c->interval_ns > 0 && c->due > (double)now && c->due - (double)now < (double)ns)
        ns = (nj_ns)(c->due - (double)now);
    const struct timespec time = {.tv_nsec = (long)ns};
    ppoll(&p, 1, &time, NULL);
}

static uint32_t step(struct crowd *c, nj_ns now, bool idle)
{
    struct epoll_event e[EVENTS_MAX];
    struct nj_list these, *l;
    uint32_t n = 0;

    nj_list_init(&these);
    nj_list_splice(&these, &c->sockets->again);
    for (; (l = nj_list_pop(&these)); n++) {
        struct client *k = nj_container_of(l, struct client, socket.again);
        crowd_on_event(k, k->socket.over ? LOAD_EV_DEAD : 0, now);
    }
    int n_events = epoll_wait(c->sockets->epoll, e, EVENTS_MAX, 0);
    for (int i = 0; i < n_events; i++, n++)
        on_kernel_event(e[i].data.ptr, e[i].events, now);
    if (n == 0 && idle)
        wait_for_events(c, now);
    return n;
}

static void end(struct crowd *c, nj_ns now)
{
    for (uint32_t i = 0; i < c->n_wanted; i++)
        if (c->clients[i].attached) {
            abort_one(&c->clients[i], now);
            release(&c->clients[i], now);
            c->clients[i].attached = false;
        }
}

const struct load_transport load_over_sockets = {
    .connect = connect_one,
    .room = room,
    .send = send_some,
    .next = next,
    .peek = peek,
    .take = take,
    .close = close_one,
    .abort = abort_one,
    .release = release,
    .step = step,
    .end = end,
};
