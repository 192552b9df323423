/* SPDX-License-Identifier: BSD-3-Clause */
#include "client.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <netinet/tcp.h>
#include <openssl/err.h>

#include "http.h"

#define EVENTS     64
#define FAILED_MAX 1000u /* connections; then the run ends */

struct conn {
    int fd; /* negative: free */
    SSL *ssl;
    bool connected, sent, has_ticket;
    nj_ns began;
    struct http_in in;
};

struct client {
    const struct client_options *o;
    SSL_CTX *ctx;
    int epoll;
    SSL_SESSION *session; /* NULL: no ticket yet */
    struct conn *conn;    /* o->n_open of them */
    uint64_t n_begun, n_done, n_resumed, n_failed;
    uint32_t n_used;
    bool full; /* a first handshake, although o->resumed */
    int *kept; /* of "hold" */
    uint32_t *took_us;
    size_t n_took, took_max;
};

nj_ns client_now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (nj_ns)t.tv_sec * NJ_SEC + (nj_ns)t.tv_nsec;
}

/* --- sockets --------------------------------------------------------------------------------- */

int client_socket(const struct target *to, uint64_t n)
{
    const int on = 1;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    if (fd < 0)
        return -1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (to->n_sources > 0) {
        struct sockaddr_in from = {.sin_family = AF_INET,
                                   .sin_addr = to->source[n % to->n_sources]};
        setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof on);
        if (bind(fd, (const struct sockaddr *)&from, sizeof from) != 0)
            goto failed;
    }
    if (connect(fd, (const struct sockaddr *)&to->server, sizeof to->server) == 0 ||
        errno == EINPROGRESS)
        return fd;
failed:
    close(fd);
    return -1;
}

void client_reset(int fd)
{
    const struct linger abort = {.l_onoff = 1};

    setsockopt(fd, SOL_SOCKET, SO_LINGER, &abort, sizeof abort);
    close(fd);
}

/* --- TLS ------------------------------------------------------------------------------------- */

/* Keeps the newest ticket. */
static int on_session(SSL *ssl, SSL_SESSION *session)
{
    struct client *c = SSL_CTX_get_app_data(SSL_get_SSL_CTX(ssl));
    struct conn *conn = SSL_get_app_data(ssl);

    conn->has_ticket = true;
    SSL_SESSION_free(c->session);
    c->session = session;
    return 1; /* the reference is ours */
}

SSL_CTX *client_ctx(void)
{
    static const uint8_t h2[] = {2, 'h', '2'};
    SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());

    if (!ctx)
        return NULL;
    SSL_CTX_set_min_proto_version(ctx, TLS1_3_VERSION);
    SSL_CTX_set_mode(ctx, SSL_MODE_RELEASE_BUFFERS);
    if (SSL_CTX_set_alpn_protos(ctx, h2, sizeof h2) == 0 &&
        SSL_CTX_set1_groups_list(ctx, "X25519") == 1)
        return ctx;
    SSL_CTX_free(ctx);
    return NULL;
}

/* --- one connection -------------------------------------------------------------------------- */

/* A copy, because libssl marks a session that was used once (RFC 8446 C.4). The servers here accept
 * a ticket several times. */
static void use_ticket(const struct client *c, struct conn *conn)
{
    SSL_SESSION *copy = SSL_SESSION_dup(c->session);

    SSL_set_session(conn->ssl, copy);
    SSL_SESSION_free(copy);
}

static bool begin(struct client *c, struct conn *conn)
{
    struct epoll_event want = {.events = EPOLLIN | EPOLLOUT | EPOLLET, .data.ptr = conn};

    memset(conn, 0, sizeof *conn);
    conn->began = client_now();
    conn->fd = client_socket(&c->o->to, c->n_begun++);
    if (conn->fd < 0)
        return false;
    c->n_used++;
    if (!c->o->clear) {
        conn->ssl = SSL_new(c->ctx);
        if (!conn->ssl || SSL_set_fd(conn->ssl, conn->fd) != 1)
            return false;
        SSL_set_connect_state(conn->ssl);
        SSL_set_app_data(conn->ssl, conn);
        if (c->session && c->o->resumed && !c->full)
            use_ticket(c, conn);
    }
    return epoll_ctl(c->epoll, EPOLL_CTL_ADD, conn->fd, &want) == 0;
}

static void end(struct client *c, struct conn *conn, bool ok)
{
    if (conn->ssl) {
        if (ok)
            c->n_resumed += SSL_session_reused(conn->ssl) != 0;
        /* A session that ends without close_notify cannot be resumed otherwise. */
        SSL_set_shutdown(conn->ssl, SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN);
        SSL_free(conn->ssl);
    }
    if (ok && c->n_took < c->took_max)
        c->took_us[c->n_took++] = (uint32_t)((client_now() - conn->began) / 1000);
    if (ok && c->kept && !c->full) {
        epoll_ctl(c->epoll, EPOLL_CTL_DEL, conn->fd, NULL);
        c->kept[c->n_done] = conn->fd;
    } else if (conn->fd >= 0) {
        client_reset(conn->fd);
    }
    c->n_done += ok;
    c->n_failed += !ok;
    c->n_used -= conn->fd >= 0;
    conn->fd = -1;
}

static int conn_read(struct conn *conn, uint8_t *p, size_t n)
{
    if (conn->ssl)
        return SSL_read(conn->ssl, p, (int)n);
    return (int)recv(conn->fd, p, n, 0);
}

static bool send_begin(const struct client *c, struct conn *conn)
{
    uint8_t out[HTTP_OUT_BYTES];
    uint32_t n = http_begin(out, c->o->request, !c->o->clear);

    conn->sent = true;
    if (conn->ssl)
        return SSL_write(conn->ssl, out, (int)n) == (int)n;
    return send(conn->fd, out, n, MSG_NOSIGNAL) == (ssize_t)n;
}

static bool may_wait(const struct conn *conn, int result)
{
    if (!conn->ssl)
        return result < 0 && errno == EAGAIN;
    int why = SSL_get_error(conn->ssl, result);
    return why == SSL_ERROR_WANT_READ || why == SSL_ERROR_WANT_WRITE;
}

/* Is everything there that ends a connection of this run? The server sends a ticket when it has
 * finished the handshake. */
static bool is_complete(const struct client *c, const struct conn *conn)
{
    if (c->o->silent)
        return !conn->ssl || conn->has_ticket;
    return c->o->request ? conn->in.response : conn->in.settings;
}

enum progress { WAITS, COMPLETE, BROKEN };

static enum progress read_frames(const struct client *c, struct conn *conn)
{
    uint8_t data[16384];

    for (;;) {
        int n = conn_read(conn, data, sizeof data);
        if (n <= 0)
            return may_wait(conn, n) ? WAITS : BROKEN;
        http_input(&conn->in, data, (uint32_t)n);
        if (conn->in.failed)
            return BROKEN;
        if (is_complete(c, conn))
            return COMPLETE;
    }
}

static enum progress drive(const struct client *c, struct conn *conn)
{
    if (conn->ssl && !SSL_is_init_finished(conn->ssl)) {
        int result = SSL_do_handshake(conn->ssl);
        if (result != 1)
            return may_wait(conn, result) ? WAITS : BROKEN;
    }
    if (c->o->silent && is_complete(c, conn))
        return COMPLETE;
    if (!c->o->silent && !conn->sent && !send_begin(c, conn))
        return BROKEN;
    enum progress p = read_frames(c, conn);
    return p == WAITS && is_complete(c, conn) ? COMPLETE : p;
}

static void on_event(struct client *c, const struct epoll_event *e)
{
    struct conn *conn = e->data.ptr;

    if (conn->fd < 0)
        return;
    if (e->events & (EPOLLERR | EPOLLHUP)) {
        end(c, conn, false);
        return;
    }
    if (!(e->events & EPOLLOUT) && !conn->connected)
        return;
    conn->connected = true;
    ERR_clear_error();
    enum progress p = drive(c, conn);
    if (p != WAITS)
        end(c, conn, p == COMPLETE);
}

/* --- many ------------------------------------------------------------------------------------ */

/* How many may have begun by now. */
static uint64_t due(const struct client *c, nj_ns since)
{
    uint64_t n = c->o->n_total > 0 ? c->o->n_total + c->n_failed : UINT64_MAX;

    return c->o->rate == 0 ? n : nj_min_u64(n, since * c->o->rate / NJ_SEC + 1);
}

static void fill(struct client *c, nj_ns since, uint64_t n_before)
{
    uint64_t n_due = due(c, since);

    for (uint32_t i = 0; i < c->o->n_open && c->n_begun - n_before < n_due; i++)
        if (c->conn[i].fd < 0 && !begin(c, &c->conn[i]))
            end(c, &c->conn[i], false);
}

static void turn(struct client *c, int wait_ms)
{
    struct epoll_event event[EVENTS];
    int n = epoll_wait(c->epoll, event, EVENTS, wait_ms);

    for (int i = 0; i < n; i++)
        on_event(c, &event[i]);
}

/* The first connection, whose ticket the others use. */
static bool get_ticket(struct client *c)
{
    nj_ns began = client_now();

    c->full = true;
    if (!begin(c, &c->conn[0]))
        return false;
    while (c->conn[0].fd >= 0 && client_now() - began < 10 * NJ_SEC)
        turn(c, 100);
    c->full = false;
    bool ok = c->n_done == 1 && c->session;
    c->n_done = c->n_failed = c->n_took = 0;
    return ok;
}

static bool init(struct client *c, const struct client_options *o)
{
    *c = (struct client){.o = o, .epoll = epoll_create1(EPOLL_CLOEXEC), .took_max = 4u << 20};
    c->conn = calloc(o->n_open, sizeof *c->conn);
    c->took_us = calloc(c->took_max, sizeof *c->took_us);
    c->ctx = client_ctx();
    if (!c->conn || !c->took_us || !c->ctx || c->epoll < 0)
        return false;
    for (uint32_t i = 0; i < o->n_open; i++)
        c->conn[i].fd = -1;
    SSL_CTX_set_app_data(c->ctx, c);
    SSL_CTX_set_session_cache_mode(c->ctx,
                                   SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL_STORE);
    SSL_CTX_sess_set_new_cb(c->ctx, on_session);
    return true;
}

static void fini(struct client *c)
{
    for (uint32_t i = 0; c->conn && i < c->o->n_open; i++)
        if (c->conn[i].fd >= 0)
            end(c, &c->conn[i], false);
    SSL_SESSION_free(c->session);
    SSL_CTX_free(c->ctx);
    free(c->conn);
    free(c->took_us);
    free(c->kept);
    close(c->epoll);
}

static int compare(const void *a, const void *b)
{
    const uint32_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

static void report(struct client *c, nj_ns took)
{
    size_t n = c->n_took;

    qsort(c->took_us, n, sizeof *c->took_us, compare);
    printf("{\"done\": %llu, \"resumed\": %llu, \"failed\": %llu, \"seconds\": %.6f, "
           "\"p50_us\": %u, \"p99_us\": %u}\n",
           (unsigned long long)c->n_done, (unsigned long long)c->n_resumed,
           (unsigned long long)c->n_failed, (double)took / NJ_SEC, n ? c->took_us[n / 2] : 0,
           n ? c->took_us[n * 99 / 100] : 0);
    fflush(stdout);
}

static bool complain(const char *what)
{
    fprintf(stderr, "nj-handshakes: %s\n", what);
    return false;
}

static bool work(struct client *c)
{
    const struct client_options *o = c->o;

    if (!c->ctx)
        return complain("no memory");
    if (o->resumed && !get_ticket(c))
        return complain("the server gave no ticket");
    uint64_t n_before = c->n_begun;
    nj_ns began = client_now(), now = began;
    while (o->n_total > 0 ? c->n_done < o->n_total : now - began < o->duration) {
        fill(c, now - began, n_before);
        turn(c, o->rate > 0 ? 1 : 10);
        now = client_now();
        if (c->n_failed > FAILED_MAX)
            return complain("too many connections failed");
    }
    while (c->n_used > 0 && client_now() - now < 5 * NJ_SEC)
        turn(c, 10);
    report(c, client_now() - began);
    return true;
}

bool client_run(const struct client_options *o)
{
    struct client c;
    bool ok = init(&c, o) && work(&c);

    fini(&c);
    return ok;
}

bool client_hold(const struct client_options *o)
{
    struct client c;
    char end_of_input[64];
    bool ok = init(&c, o);

    c.kept = calloc(o->n_total + o->n_open + 1, sizeof *c.kept);
    ok = ok && c.kept && work(&c);
    while (ok && read(0, end_of_input, sizeof end_of_input) > 0)
        ;
    for (uint64_t i = 0; c.kept && i < c.n_done; i++)
        client_reset(c.kept[i]);
    fini(&c);
    return ok;
}
