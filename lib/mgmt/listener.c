/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The thread: it accepts, gives connections to libmicrohttpd (MHD_add_connection(3)), and runs it
 * when its epoll(7) descriptor says so. Connections are few, and each has a deadline for its
 * request and one for its response, since the time-out of libmicrohttpd is one of silence only.
 */
#include "mgmt/listener.h"

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/set_error.h"
#include "base/signal_stack.h"
#include "base/thread_start_on_cpus.h"
#include "log/log.h"
#include "mgmt/capture.h"
#include "mgmt/http_exchange.h"
#include "mgmt/trace.h"
#include "rights/syscall_filter.h"
#include "threads/os_clock.h"

/* Connections at once, by where they arrive, so that nobody far away takes a place of those here;
 * from elsewhere also of one IPv4 address, or one IPv6 network. */
#define UNIX_MAX     256u
#define LOOPBACK_MAX 128u
#define OTHERS_MAX   256u
#define ADDRESS_MAX  16u
#define CLIENTS_MAX  (UNIX_MAX + LOOPBACK_MAX + OTHERS_MAX)
#define IP6_BITS     64u           /* of such a network */
#define ACCEPTS_MAX  64u           /* in a row, of one socket */
#define MEMORY       (32u << 10)   /* of a connection: its head, and buffers */
#define REQUEST_TIME (10 * NJ_SEC) /* of a connection, until its first request is complete */
#define IDLE_TIME    (75 * NJ_SEC) /* until each later one is complete */
#define SEND_TIME    (60 * NJ_SEC) /* of a response */
#define SILENCE_S    60u
#define BACKLOG      256
#define LONG_TIME    (50 * NJ_MS)  /* of requests in a row: others have waited */
#define CHECK_MS     1000          /* between two looks at deadlines */
#define ASK_MS       50            /* between two questions to streams that have nothing to send */
#define ACCEPT_PAUSE (100 * NJ_MS) /* while nothing can be accepted */

/* A place for a connection. */
struct client {
    int fd;              /* -1: free */
    struct nj_addr from; /* of those from elsewhere */
    bool is_ended;       /* its deadline has passed */
    nj_ns deadline;
    struct nj__mgmt_exchange exchange;
};

struct nj_mgmt_listener {
    struct nj_mgmt_sockets *sockets;
    struct MHD_Daemon *daemon;
    int epoll_fd; /* of `daemon` */
    pthread_t thread;
    _Atomic bool is_stopping, yields;
    _Atomic bool has_answer; /* of a slow route */
    _Atomic bool has_new_tokens;
    pthread_mutex_t lock; /* of what follows */
    struct nj_mgmt_tokens tokens;

    /* The thread only. */
    bool has_yielded;
    uint32_t n_clients[NJ__MGMT_PLACES];
    struct client *accepted; /* the one that MHD_add_connection() is called for */
    nj_ns checked_at, asked_at;
    nj_ns accepts_at; /* not before: the process has no descriptor or no memory left */
    struct nj__mgmt_answerer answerer;
    struct client client[CLIENTS_MAX];
};

static nj_ns now(void)
{
    return nj_os_clock_gettime_ns(CLOCK_MONOTONIC);
}

/* --- called by libmicrohttpd ------------------------------------------------------------------ */

static void forget_client(struct nj_mgmt_listener *l, struct client *c)
{
    l->n_clients[c->exchange.place]--;
    c->fd = -1;
}

static void on_connection(void *listener, struct MHD_Connection *c, void **socket_context,
                          enum MHD_ConnectionNotificationCode what)
{
    struct nj_mgmt_listener *l = listener;
    struct client *client = *socket_context;

    if (what == MHD_CONNECTION_NOTIFY_STARTED) {
        *socket_context = l->accepted;
    } else if (client) {
        nj__mgmt_exchange_end(&client->exchange);
        forget_client(l, client);
        *socket_context = NULL;
    }
}

static struct client *client_of(struct MHD_Connection *c)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(c, MHD_CONNECTION_INFO_SOCKET_CONTEXT);

    return info ? info->socket_context : NULL;
}

static void *on_url(void *listener, const char *url, struct MHD_Connection *c)
{
    struct client *client = client_of(c);

    if (client)
        nj__mgmt_exchange_begin(&client->exchange, url);
    return NULL;
}

static enum MHD_Result on_request(void *listener, struct MHD_Connection *c, const char *path,
                                  const char *method, const char *version, const char *data,
                                  size_t *n_data, void **request)
{
    struct nj_mgmt_listener *l = listener;
    struct client *client = client_of(c);

    if (!client)
        return MHD_NO;
    pthread_mutex_lock(&l->lock);
    l->answerer.tokens = l->tokens;
    pthread_mutex_unlock(&l->lock);
    *request = client;
    enum MHD_Result rc =
        nj__mgmt_exchange_step(&client->exchange, &l->answerer, c, path, method, data, n_data);
    if (client->exchange.is_answered)
        client->deadline = now() + SEND_TIME;
    return rc;
}

static void on_completed(void *listener, struct MHD_Connection *c, void **request,
                         enum MHD_RequestTerminationCode how)
{
    struct client *client = client_of(c);

    if (!client)
        return;
    nj__mgmt_exchange_end(&client->exchange);
    client->deadline = now() + IDLE_TIME;
}

/* A route is compared with the path as the client sent it: no route has a character that needs an
 * escape. */
static size_t keep_escapes(void *listener, struct MHD_Connection *c, char *text)
{
    return strlen(text);
}

/* --- connections ------------------------------------------------------------------------------ */

static bool has_room(const struct nj_mgmt_listener *l, enum nj__mgmt_place place,
                     const struct nj_addr *from)
{
    static const uint32_t n_max[] = {[NJ__MGMT_UNIX] = UNIX_MAX,
                                     [NJ__MGMT_LOOPBACK] = LOOPBACK_MAX,
                                     [NJ__MGMT_ELSEWHERE] = OTHERS_MAX};
    uint32_t n_same = 0;

    for (uint32_t i = 0; place == NJ__MGMT_ELSEWHERE && i < CLIENTS_MAX; i++) {
        const struct client *c = &l->client[i];
        n_same += c->fd >= 0 && c->exchange.place == place && nj_addr_eq(&c->from, from);
    }
    return l->n_clients[place] < n_max[place] && n_same < ADDRESS_MAX;
}

static struct client *free_client(struct nj_mgmt_listener *l)
{
    for (uint32_t i = 0; i < CLIENTS_MAX; i++)
        if (l->client[i].fd < 0)
            return &l->client[i];
    return NULL;
}

/* The address, of IPv6 without what a host chooses. */
static struct nj_addr network_of(const struct sockaddr_storage *from)
{
    struct nj_addr a = {0};

    if (from->ss_family == AF_INET6)
        memcpy(a.b, &((const struct sockaddr_in6 *)from)->sin6_addr, IP6_BITS / 8);
    else if (from->ss_family == AF_INET)
        memcpy(a.b, &((const struct sockaddr_in *)from)->sin_addr, sizeof(struct in_addr));
    return a;
}

/* One more than there may be is closed at once. */
static void add_client(struct nj_mgmt_listener *l, int fd, enum nj__mgmt_place place,
                       const struct sockaddr_storage *from)
{
    struct nj_addr network = network_of(from);
    struct client *client = has_room(l, place, &network) ? free_client(l) : NULL;

    if (!client) {
        close(fd);
        return;
    }
    *client = (struct client){
        .fd = fd, .from = network, .deadline = now() + REQUEST_TIME, .exchange.place = place};
    l->n_clients[place]++;
    l->accepted = client;
    enum MHD_Result rc = MHD_add_connection(l->daemon, fd, (const struct sockaddr *)from,
                                            sizeof *from); /* closes it if it fails */
    l->accepted = NULL;
    if (rc != MHD_YES && client->fd >= 0)
        forget_client(l, client);
}

static void accept_all(struct nj_mgmt_listener *l, int fd, enum nj__mgmt_place place)
{
    for (uint32_t i = 0; i < ACCEPTS_MAX; i++) {
        struct sockaddr_storage from = {.ss_family = AF_UNIX};
        socklen_t n_from = sizeof from;
        int client = accept4(fd, (struct sockaddr *)&from, &n_from, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (client >= 0)
            add_client(l, client, place, &from);
        else if (errno == EAGAIN)
            return;
        else if (errno != ECONNABORTED && errno != EINTR) {
            l->accepts_at = now() + ACCEPT_PAUSE;
            return;
        }
    }
}

/* --- time ------------------------------------------------------------------------------------- */

/* The time in which the thread did other things is not the client's. */
static void extend_deadlines(struct nj_mgmt_listener *l, nj_ns by)
{
    for (uint32_t i = 0; by >= LONG_TIME && i < CLIENTS_MAX; i++)
        l->client[i].deadline += by;
}

static bool is_suspended(const struct nj_mgmt_listener *l)
{
    for (uint32_t i = 0; i < CLIENTS_MAX; i++)
        if (l->client[i].fd >= 0 && l->client[i].exchange.is_suspended)
            return true;
    return false;
}

static void resume_all(struct nj_mgmt_listener *l)
{
    for (uint32_t i = 0; i < CLIENTS_MAX; i++)
        if (l->client[i].fd >= 0)
            nj__mgmt_exchange_resume(&l->client[i].exchange);
}

static void ask_streams(struct nj_mgmt_listener *l)
{
    nj_ns at = now();

    if (at - l->asked_at < ASK_MS * NJ_MS && !atomic_exchange(&l->has_answer, false))
        return;
    l->asked_at = at;
    for (uint32_t i = 0; i < CLIENTS_MAX; i++)
        if (l->client[i].fd >= 0 && nj__mgmt_exchange_has_more(&l->client[i].exchange))
            nj__mgmt_exchange_resume(&l->client[i].exchange);
}

/* While it is suspended, libmicrohttpd does not see that its peer has closed it. */
static bool has_gone(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLRDHUP};

    return poll(&p, 1, 0) > 0;
}

/* It has sent all that it will send. libmicrohttpd learns of an end that arrives together with
 * bytes only at the next event. */
static bool has_ended(int fd)
{
    char byte;

    return recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}

static bool is_late(struct client *c, nj_ns at)
{
    const struct nj__mgmt_exchange *e = &c->exchange;

    if (e->is_suspended || e->has_taken)
        c->deadline = at + SEND_TIME;
    c->exchange.has_taken = false;
    if (at >= c->deadline)
        return true;
    return e->is_suspended ? e->stream.read && has_gone(c->fd)
                           : !e->is_answered && has_ended(c->fd);
}

/* libmicrohttpd finds a connection that is shut down closed, and closes it. */
static void cut(struct client *c)
{
    c->is_ended = c->exchange.is_cut = true;
    shutdown(c->fd, SHUT_RDWR);
}

/* A token that is no longer valid has no streams. Clients with the new one ask again. */
static void follow_tokens(struct nj_mgmt_listener *l)
{
    if (!atomic_exchange(&l->has_new_tokens, false))
        return;
    for (uint32_t i = 0; i < CLIENTS_MAX; i++) {
        struct client *c = &l->client[i];
        if (c->fd >= 0 && c->exchange.place == NJ__MGMT_LOOPBACK && c->exchange.stream.read)
            cut(c);
    }
}

static void end_late_clients(struct nj_mgmt_listener *l)
{
    nj_ns at = now();

    if (at - l->checked_at < CHECK_MS * NJ_MS)
        return;
    l->checked_at = at;
    for (uint32_t i = 0; i < CLIENTS_MAX; i++) {
        struct client *c = &l->client[i];
        if (c->fd >= 0 && !c->is_ended && is_late(c, at))
            cut(c);
    }
}

/* --- the thread ------------------------------------------------------------------------------- */

static enum nj__mgmt_place place_of(const struct nj_mgmt_tcp_socket *s)
{
    return s->address->is_loopback ? NJ__MGMT_LOOPBACK : NJ__MGMT_ELSEWHERE;
}

/* A TCP socket that is shut down listens no longer, but stays bound, so that the kernel gives all
 * connections to the other process. */
static void follow_yield(struct nj_mgmt_listener *l)
{
    bool yields = atomic_load(&l->yields);

    for (uint32_t i = 0; yields != l->has_yielded && i < l->sockets->n_tcp; i++) {
        const struct nj_mgmt_tcp_socket *s = &l->sockets->tcp[i];
        if (yields) {
            accept_all(l, s->fd, place_of(s));
            shutdown(s->fd, SHUT_RD);
        } else if (listen(s->fd, BACKLOG) != 0) {
            nj_log(NJ_LEVEL_WARNING, "--management-listen: port %u: %s", s->address->port,
                   strerror(errno));
        }
    }
    l->has_yielded = yields;
}

static bool has_clients(const struct nj_mgmt_listener *l)
{
    uint32_t n = 0;

    for (unsigned i = 0; i < NJ__MGMT_PLACES; i++)
        n += l->n_clients[i];
    return n > 0;
}

/* Does a stream wait, or an lcore still have the memory of one that has ended? */
static bool asks_soon(struct nj_mgmt_listener *l)
{
    const struct nj_mgmt_view *v = l->answerer.view;
    bool captures = v->capture && nj__capture_tick(v->capture);
    bool traces = v->trace && nj__trace_tick(v->trace);

    return captures || traces || is_suspended(l);
}

/* Entries with a negative descriptor are ignored (poll(2)). */
static void wait_and_serve(struct nj_mgmt_listener *l)
{
    const struct nj_mgmt_sockets *s = l->sockets;
    bool accepts = now() >= l->accepts_at;
    struct pollfd fds[3 + NJ_SERVER_MANAGEMENT_MAX] = {
        {.fd = s->wake_fd, .events = POLLIN},
        {.fd = l->epoll_fd, .events = POLLIN},
        {.fd = accepts ? s->unix_fd : -1, .events = POLLIN},
    };
    struct pollfd *tcp = fds + 3;
    MHD_UNSIGNED_LONG_LONG ms;
    uint64_t n_wakes;
    int wait = asks_soon(l) ? ASK_MS : has_clients(l) ? CHECK_MS : -1;

    if (!accepts)
        wait = wait == ASK_MS ? wait : (int)(ACCEPT_PAUSE / NJ_MS);
    for (uint32_t i = 0; i < s->n_tcp; i++)
        tcp[i] =
            (struct pollfd){.fd = accepts && !l->has_yielded ? s->tcp[i].fd : -1, .events = POLLIN};
    if (MHD_get_timeout(l->daemon, &ms) == MHD_YES && (wait < 0 || ms < (unsigned)wait))
        wait = (int)nj_min_u64(ms, CHECK_MS);
    if (poll(fds, 3 + s->n_tcp, wait) > 0) {
        if (fds[0].revents)
            (void)!read(s->wake_fd, &n_wakes, sizeof n_wakes);
        if (fds[2].revents)
            accept_all(l, fds[2].fd, NJ__MGMT_UNIX);
        for (uint32_t i = 0; i < s->n_tcp; i++)
            if (tcp[i].revents)
                accept_all(l, tcp[i].fd, place_of(&s->tcp[i]));
    }
    ask_streams(l);
    nj_ns began_at = now();
    MHD_run_wait(l->daemon, 0);
    extend_deadlines(l, now() - began_at);
    end_late_clients(l);
}

static void *serve(void *listener)
{
    struct nj_mgmt_listener *l = listener;
    void *altstack = nj_altstack_install();

    pthread_setname_np(pthread_self(), "nj-management");
    nj_syscall_allow_list_load();
    while (!atomic_load_explicit(&l->is_stopping, memory_order_acquire)) {
        follow_yield(l);
        follow_tokens(l);
        nj_mgmt_sockets_take_repaired(l->sockets);
        wait_and_serve(l);
    }
    nj__mgmt_slow_stop(l->answerer.slow);
    resume_all(l); /* libmicrohttpd ends the process if one is suspended at its end */
    MHD_stop_daemon(l->daemon);
    nj__mgmt_events_end(&l->answerer.events);
    nj_altstack_remove(altstack);
    return NULL;
}

/* --- called by the server --------------------------------------------------------------------- */

static struct MHD_Daemon *start_daemon(struct nj_mgmt_listener *l)
{
    return MHD_start_daemon(MHD_USE_EPOLL | MHD_USE_NO_LISTEN_SOCKET | MHD_ALLOW_SUSPEND_RESUME, 0,
                            NULL, NULL, on_request, l, MHD_OPTION_CONNECTION_LIMIT, CLIENTS_MAX,
                            MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)MEMORY,
                            MHD_OPTION_CONNECTION_TIMEOUT, SILENCE_S, MHD_OPTION_NOTIFY_CONNECTION,
                            on_connection, l, MHD_OPTION_NOTIFY_COMPLETED, on_completed, l,
                            MHD_OPTION_URI_LOG_CALLBACK, on_url, l, MHD_OPTION_UNESCAPE_CALLBACK,
                            keep_escapes, NULL, MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_END);
}

/* On the thread of slow routes. */
static void on_answer(void *listener)
{
    struct nj_mgmt_listener *l = listener;

    atomic_store(&l->has_answer, true);
    nj_mgmt_sockets_wake(l->sockets);
}

static void free_listener(struct nj_mgmt_listener *l)
{
    if (l->answerer.slow)
        nj__mgmt_slow_free(l->answerer.slow);
    pthread_mutex_destroy(&l->lock);
    explicit_bzero(&l->tokens, sizeof l->tokens);
    explicit_bzero(&l->answerer, sizeof l->answerer);
    free(l);
}

static int epoll_of(struct MHD_Daemon *daemon)
{
    const union MHD_DaemonInfo *info = MHD_get_daemon_info(daemon, MHD_DAEMON_INFO_EPOLL_FD);

    return info ? info->epoll_fd : -1;
}

struct nj_mgmt_listener *nj_mgmt_listener_start(const struct nj_mgmt_view *view,
                                                struct nj_mgmt_sockets *sockets,
                                                const cpu_set_t *cpus, char *why, size_t why_bytes)
{
    struct nj_mgmt_listener *l = calloc(1, sizeof *l);

    if (!l) {
        nj_set_error(why, why_bytes, "management: out of memory");
        return NULL;
    }
    l->sockets = sockets;
    l->answerer.view = view;
    pthread_mutex_init(&l->lock, NULL);
    for (uint32_t i = 0; i < CLIENTS_MAX; i++)
        l->client[i].fd = -1;
    l->daemon = start_daemon(l);
    l->epoll_fd = l->daemon ? epoll_of(l->daemon) : -1;
    if (l->epoll_fd >= 0)
        l->answerer.slow = nj__mgmt_slow_start(cpus, on_answer, l);
    int rc = l->answerer.slow ? nj_thread_start(&l->thread, cpus, serve, l) : errno;
    if (rc == 0)
        return l;
    nj_set_error(why, why_bytes, "management: the listener does not start: %s", strerror(rc));
    if (l->answerer.slow)
        nj__mgmt_slow_stop(l->answerer.slow);
    if (l->daemon)
        MHD_stop_daemon(l->daemon);
    free_listener(l);
    return NULL;
}

void nj_mgmt_listener_stop(struct nj_mgmt_listener *l)
{
    if (!l)
        return;
    atomic_store_explicit(&l->is_stopping, true, memory_order_release);
    nj_mgmt_sockets_wake(l->sockets);
    pthread_join(l->thread, NULL);
    free_listener(l);
}

static bool is_same(const struct nj_mgmt_token *a, const struct nj_mgmt_token *b)
{
    return a->is_set == b->is_set && memcmp(&a->hash, &b->hash, sizeof a->hash) == 0;
}

void nj_mgmt_listener_set(struct nj_mgmt_listener *l, const struct nj_mgmt_tokens *tokens)
{
    pthread_mutex_lock(&l->lock);
    bool are_new =
        !is_same(&l->tokens.read, &tokens->read) || !is_same(&l->tokens.write, &tokens->write);
    l->tokens = *tokens;
    pthread_mutex_unlock(&l->lock);
    if (are_new) {
        atomic_store(&l->has_new_tokens, true);
        nj_mgmt_sockets_wake(l->sockets);
    }
}

void nj_mgmt_listener_yield(struct nj_mgmt_listener *l, bool yields)
{
    atomic_store(&l->yields, yields);
    nj_mgmt_sockets_wake(l->sockets);
}
