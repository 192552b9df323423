/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls of a script: converts arguments, and compares results and output arguments. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "script/script.h"

#define OUR_PORT 8080

int run_live_fd(struct run *r, int64_t script_fd)
{
    for (uint32_t i = 0; i < r->n_fds; i++)
        if (r->fd[i].script_fd == script_fd)
            return r->fd[i].live_fd;
    return -1;
}

static struct peer *peer_of(struct run *r, int64_t script_fd)
{
    for (uint32_t i = 0; i < r->n_fds; i++)
        if (r->fd[i].script_fd == script_fd)
            return r->fd[i].peer;
    return NULL;
}

static int NJ_PRINTF(2, 3) wrong(struct job *j, const char *format, ...)
{
    va_list ap;

    va_start(ap, format);
    if (!j->message[0])
        vsnprintf(j->message, sizeof j->message, format, ap);
    va_end(ap);
    return -1;
}

static const struct value *arg(struct job *j, uint32_t i)
{
    static const struct value none = {.kind = V_ELLIPSIS};
    if (i < j->event->args.n)
        return &j->event->args.item[i];
    wrong(j, "%s() needs more arguments", j->event->call);
    return &none;
}

static int64_t num(struct job *j, uint32_t i)
{
    return arg(j, i)->num;
}

/* The descriptor in argument `i`. A number that the script never got is passed unchanged: EBADF. */
static int fd(struct job *j, uint32_t i)
{
    return run_live_fd(j->run, num(j, i));
}

static size_t n_bytes(struct job *j, uint32_t i)
{
    int64_t n = num(j, i);
    if (n < 0 || n > (int64_t)SCRIPT_CALL_BYTES) {
        wrong(j, "%lld bytes are more than a call may have here", (long long)n);
        return 0;
    }
    return (size_t)n;
}

static const struct value *member(const struct value *v, const char *name, uint32_t place)
{
    for (uint32_t i = 0; i < v->n; i++)
        if (strcmp(v->item[i].name, name) == 0)
            return &v->item[i];
    return place < v->n && !v->item[place].name[0] ? &v->item[place] : NULL;
}

static int64_t member_num(const struct value *v, const char *name, uint32_t place)
{
    const struct value *m = member(v, name, place);
    return m ? m->num : 0;
}

/* --- opening -----------------------------------------------------------------------------------
 */

union address {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
};

static union address address(const struct job *j, bool peer, socklen_t *n)
{
    struct nj_addr ip = run_addr(j->run->s, peer);
    union address a = {0};

    if (j->run->s->v6) {
        a.v6.sin6_family = AF_INET6;
        a.v6.sin6_port = htons(OUR_PORT);
        memcpy(&a.v6.sin6_addr, &ip, sizeof ip);
        *n = sizeof a.v6;
    } else {
        a.v4.sin_family = AF_INET;
        a.v4.sin_port = htons(OUR_PORT);
        a.v4.sin_addr.s_addr = nj_addr_to_v4(&ip);
        *n = sizeof a.v4;
    }
    return a;
}

static int64_t call_socket(struct job *j, struct packetdrill_interface *c)
{
    int family = j->run->s->v6 ? AF_INET6 : AF_INET;

    if (arg(j, 0)->kind == V_INT)
        family = (int)num(j, 0);
    j->new_live_fd = c->socket(c->userdata, family, (int)num(j, 1), (int)num(j, 2));
    return j->new_live_fd;
}

static int64_t call_bind(struct job *j, struct packetdrill_interface *c)
{
    socklen_t n;
    union address a = address(j, false, &n);
    return c->bind(c->userdata, fd(j, 0), &a.any, n);
}

static int64_t call_listen(struct job *j, struct packetdrill_interface *c)
{
    return c->listen(c->userdata, fd(j, 0), (int)num(j, 1));
}

static int64_t call_accept(struct job *j, struct packetdrill_interface *c)
{
    union address a = {0};
    socklen_t n = sizeof a;

    j->new_live_fd = c->accept(c->userdata, fd(j, 0), &a.any, &n);
    for (int i = 0; i < SCRIPT_PEERS_MAX; i++) /* the port has the same offset in both families */
        if (j->new_live_fd >= 0 && j->run->peer[i].remote_port == ntohs(a.v4.sin_port))
            j->new_peer = &j->run->peer[i];
    return j->new_live_fd;
}

/* The script's peer becomes the listening end, on port 8080. Our port is learned from our SYN. */
static int64_t call_connect(struct job *j, struct packetdrill_interface *c)
{
    struct peer *p = j->run->cur;
    socklen_t n;
    union address a = address(j, true, &n);

    if (!peer_of(j->run, num(j, 0))) {
        p->remote_port = OUR_PORT;
        p->local_port = 0;
        p->new_isn = true;
        p->n_written = p->n_read = 1;
        for (uint32_t i = 0; i < j->run->n_fds; i++)
            if (j->run->fd[i].script_fd == num(j, 0))
                j->run->fd[i].peer = p;
        j->run->last_conn = (int)num(j, 0);
    }
    return c->connect(c->userdata, fd(j, 0), &a.any, n);
}

/* --- bytes -------------------------------------------------------------------------------------
 */

/* Buffers of a call: a length, or a list of {..., length}. */
struct buffers {
    struct iovec iov[SCRIPT_ITEMS_MAX];
    int n;
    uint8_t *mem;
};

static bool buffers_from(struct job *j, const struct value *list, struct buffers *b)
{
    size_t total = 0;

    for (uint32_t i = 0; i < list->n; i++)
        total += (size_t)member_num(&list->item[i], "iov_len", 1);
    memset(b, 0, sizeof *b);
    if (total > SCRIPT_CALL_BYTES)
        return wrong(j, "%zu bytes are more than a call may have here", total) == 0;
    b->mem = calloc(1, total ? total : 1);
    uint8_t *at = b->mem;
    for (uint32_t i = 0; b->mem && i < list->n; i++) {
        size_t n = (size_t)member_num(&list->item[i], "iov_len", 1);
        b->iov[b->n++] = (struct iovec){at, n};
        at += n;
    }
    return b->mem != NULL;
}

static void fill(struct job *j, uint8_t *to, size_t n)
{
    struct peer *p = peer_of(j->run, num(j, 0));

    for (size_t i = 0; i < n; i++)
        to[i] = run_byte((p ? p->n_written : 1) + (uint32_t)i, false);
}

static ssize_t wrote(struct job *j, ssize_t n)
{
    struct peer *p = peer_of(j->run, num(j, 0));
    if (p && n > 0)
        p->n_written += (uint32_t)n;
    return n;
}

static ssize_t check_read(struct job *j, const uint8_t *data, ssize_t n, int flags)
{
    struct peer *p = peer_of(j->run, num(j, 0));

    for (ssize_t i = 0; p && i < n && !(flags & MSG_TRUNC); i++)
        if (data[i] != run_byte(p->n_read + (uint32_t)i, true))
            return wrong(j, "byte %u of the peer's stream is wrong", p->n_read + (uint32_t)i), n;
    if (p && n > 0 && !(flags & MSG_PEEK))
        p->n_read += (uint32_t)n;
    return n;
}

/* `0` or NULL in place of a buffer: NULL. */
static void *buffer(struct job *j, uint32_t i, void *data)
{
    return arg(j, i)->kind == V_INT && num(j, i) == 0 ? NULL : data;
}

static int64_t call_write(struct job *j, struct packetdrill_interface *c)
{
    size_t n = n_bytes(j, 2);
    uint8_t *data = malloc(n + 1);
    ssize_t result;
    bool is_write = strcmp(j->event->call, "write") == 0;
    bool is_send = strcmp(j->event->call, "send") == 0;

    fill(j, data, n);
    if (is_write)
        result = c->write(c->userdata, fd(j, 0), buffer(j, 1, data), n);
    else if (is_send)
        result = c->send(c->userdata, fd(j, 0), buffer(j, 1, data), n, (int)num(j, 3));
    else
        result = c->sendto(c->userdata, fd(j, 0), buffer(j, 1, data), n, (int)num(j, 3), NULL, 0);
    free(data);
    return wrote(j, result);
}

static int64_t call_read(struct job *j, struct packetdrill_interface *c)
{
    size_t n = n_bytes(j, 2);
    uint8_t *data = calloc(1, n + 1);
    bool is_read = strcmp(j->event->call, "read") == 0;
    bool is_recv = strcmp(j->event->call, "recv") == 0;
    int flags = is_read ? 0 : (int)num(j, 3);
    ssize_t result;

    if (is_read)
        result = c->read(c->userdata, fd(j, 0), buffer(j, 1, data), n);
    else if (is_recv)
        result = c->recv(c->userdata, fd(j, 0), buffer(j, 1, data), n, flags);
    else
        result = c->recvfrom(c->userdata, fd(j, 0), buffer(j, 1, data), n, flags, NULL, NULL);
    result = check_read(j, data, result, flags);
    free(data);
    return result;
}

static int64_t call_writev(struct job *j, struct packetdrill_interface *c)
{
    bool is_msg = strcmp(j->event->call, "sendmsg") == 0;
    const struct value *list = is_msg ? member(arg(j, 1), "msg_iov", 1) : arg(j, 1);
    struct buffers b;

    if (!list || !buffers_from(j, list, &b))
        return wrong(j, "no buffers");
    size_t n = 0;
    for (int i = 0; i < b.n; i++)
        n += b.iov[i].iov_len;
    fill(j, b.mem, n);
    struct msghdr msg = {.msg_iov = b.iov, .msg_iovlen = (size_t)b.n};
    ssize_t result = is_msg ? c->sendmsg(c->userdata, fd(j, 0), &msg, (int)num(j, 2))
                            : c->writev(c->userdata, fd(j, 0), b.iov, b.n);
    free(b.mem);
    return wrote(j, result);
}

static int64_t call_readv(struct job *j, struct packetdrill_interface *c)
{
    bool is_msg = strcmp(j->event->call, "recvmsg") == 0;
    const struct value *list = is_msg ? member(arg(j, 1), "msg_iov", 1) : arg(j, 1);
    struct buffers b;

    if (!list || !buffers_from(j, list, &b))
        return wrong(j, "no buffers");
    struct msghdr msg = {.msg_iov = b.iov, .msg_iovlen = (size_t)b.n};
    int flags = is_msg ? (int)num(j, 2) : 0;
    ssize_t result = is_msg ? c->recvmsg(c->userdata, fd(j, 0), &msg, flags)
                            : c->readv(c->userdata, fd(j, 0), b.iov, b.n);
    result = check_read(j, b.mem, result, flags);
    free(b.mem);
    return result;
}

/* --- the rest ----------------------------------------------------------------------------------
 */

static int64_t call_close(struct job *j, struct packetdrill_interface *c)
{
    return c->close(c->userdata, fd(j, 0));
}

static int64_t call_shutdown(struct job *j, struct packetdrill_interface *c)
{
    return c->shutdown(c->userdata, fd(j, 0), (int)num(j, 1));
}

static int64_t call_fcntl(struct job *j, struct packetdrill_interface *c)
{
    bool has_value = j->event->args.n > 2;
    return c->fcntl(c->userdata, fd(j, 0), (int)num(j, 1), has_value ? (int)num(j, 2) : 0);
}

/* ioctl(4, SIOCINQ, [1000]) = 0: the number is an output. */
static int64_t call_ioctl(struct job *j, struct packetdrill_interface *c)
{
    const struct value *want = arg(j, 2);
    int value = 0, result = c->ioctl(c->userdata, fd(j, 0), (unsigned long)num(j, 1), &value);

    if (result == 0 && want->kind == V_LIST && want->n == 1 && want->item[0].num != value)
        wrong(j, "ioctl() says %d, not %lld", value, (long long)want->item[0].num);
    return result;
}

static int64_t call_setsockopt(struct job *j, struct packetdrill_interface *c)
{
    const struct value *v = arg(j, 3);
    int level = (int)num(j, 1), name = (int)num(j, 2);

    if (v->kind == V_STRING)
        return c->setsockopt(c->userdata, fd(j, 0), level, name, v->text,
                             (socklen_t)strlen(v->text));
    if (v->kind == V_STRUCT) {
        struct linger l = {(int)member_num(v, "onoff", 0), (int)member_num(v, "linger", 1)};
        return c->setsockopt(c->userdata, fd(j, 0), level, name, &l, sizeof l);
    }
    int n = v->kind == V_LIST && v->n ? (int)v->item[0].num : (int)v->num;
    return c->setsockopt(c->userdata, fd(j, 0), level, name, &n, sizeof n);
}

static int64_t call_getsockopt(struct job *j, struct packetdrill_interface *c)
{
    const struct value *v = arg(j, 3);
    union {
        int n;
        struct linger l;
        char text[SCRIPT_WORD_MAX];
    } got = {0};
    socklen_t n = sizeof got;
    int result = c->getsockopt(c->userdata, fd(j, 0), (int)num(j, 1), (int)num(j, 2), &got, &n);

    if (result != 0)
        return result;
    if (v->kind == V_STRING && strncmp(v->text, got.text, sizeof got.text) != 0)
        wrong(j, "the option is \"%.30s\", not \"%s\"", got.text, v->text);
    if (v->kind == V_STRUCT && (got.l.l_onoff != member_num(v, "onoff", 0) ||
                                got.l.l_linger != member_num(v, "linger", 1)))
        wrong(j, "the option is {%d, %d}", got.l.l_onoff, got.l.l_linger);
    if (v->kind == V_LIST && v->n == 1 && v->item[0].kind == V_INT && v->item[0].num != got.n)
        wrong(j, "the option is %d, not %lld", got.n, (long long)v->item[0].num);
    return result;
}

static int64_t call_poll(struct job *j, struct packetdrill_interface *c)
{
    struct pollfd fds[SCRIPT_ITEMS_MAX] = {0};
    const struct value *list = arg(j, 0);

    for (uint32_t i = 0; i < list->n; i++) {
        fds[i].fd = run_live_fd(j->run, member_num(&list->item[i], "fd", 0));
        fds[i].events = (short)member_num(&list->item[i], "events", 1);
    }
    int result = c->poll(c->userdata, fds, list->n, (int)num(j, 2));
    for (uint32_t i = 0; i < list->n; i++) {
        const struct value *want = member(&list->item[i], "revents", 2);
        if (want && want->num != fds[i].revents)
            wrong(j, "revents of entry %u is 0x%x, not 0x%llx", i, (unsigned)fds[i].revents,
                  (unsigned long long)want->num);
    }
    return result;
}

static int64_t call_epoll_create(struct job *j, struct packetdrill_interface *c)
{
    j->new_live_fd = c->epoll_create(c->userdata, (int)num(j, 0));
    return j->new_live_fd;
}

static int64_t call_epoll_ctl(struct job *j, struct packetdrill_interface *c)
{
    const struct value *v = arg(j, 3);
    struct epoll_event e = {.events = (uint32_t)member_num(v, "events", 0),
                            .data.fd = (int)member_num(v, "fd", 1)};
    return c->epoll_ctl(c->userdata, fd(j, 0), (int)num(j, 1), fd(j, 2), &e);
}

/* epoll_wait(5, {events=EPOLLIN, fd=4}, 1, 100) = 1: only one event can be compared. */
static int64_t call_epoll_wait(struct job *j, struct packetdrill_interface *c)
{
    const struct value *v = arg(j, 1);
    struct epoll_event e[SCRIPT_ITEMS_MAX] = {0};
    int n_max = num(j, 2) > (int)SCRIPT_ITEMS_MAX ? (int)SCRIPT_ITEMS_MAX : (int)num(j, 2);
    int result = c->epoll_wait(c->userdata, fd(j, 0), e, n_max, (int)num(j, 3));

    if (result > 0 && v->kind == V_STRUCT &&
        (e[0].events != (uint32_t)member_num(v, "events", 0) ||
         e[0].data.fd != (int)member_num(v, "fd", 1)))
        wrong(j, "the event is 0x%x of %d", e[0].events, e[0].data.fd);
    return result;
}

/* Our extension: peer(2) selects the second peer for the following lines. */
static int64_t call_peer(struct job *j, struct packetdrill_interface *c)
{
    int64_t n = num(j, 0);

    (void)c;
    if (n < 1 || n > SCRIPT_PEERS_MAX)
        return wrong(j, "there are peers 1 to %d", SCRIPT_PEERS_MAX);
    j->run->cur = &j->run->peer[n - 1];
    return 0;
}

static const struct {
    const char *name;
    int64_t (*run)(struct job *, struct packetdrill_interface *);
} calls[] = {
    {"socket", call_socket},
    {"bind", call_bind},
    {"listen", call_listen},
    {"accept", call_accept},
    {"connect", call_connect},
    {"read", call_read},
    {"recv", call_read},
    {"recvfrom", call_read},
    {"readv", call_readv},
    {"recvmsg", call_readv},
    {"write", call_write},
    {"send", call_write},
    {"sendto", call_write},
    {"writev", call_writev},
    {"sendmsg", call_writev},
    {"close", call_close},
    {"shutdown", call_shutdown},
    {"fcntl", call_fcntl},
    {"ioctl", call_ioctl},
    {"getsockopt", call_getsockopt},
    {"setsockopt", call_setsockopt},
    {"poll", call_poll},
    {"epoll_create", call_epoll_create},
    {"epoll_ctl", call_epoll_ctl},
    {"epoll_wait", call_epoll_wait},
    {"peer", call_peer},
};

/* --- one call ----------------------------------------------------------------------------------
 */

void job_run(struct job *j)
{
    struct timeval tv = {0};

    j->new_live_fd = -1;
    for (size_t i = 0; i < NJ_ARRAY_LEN(calls); i++) {
        if (strcmp(calls[i].name, j->event->call) == 0) {
            errno = 0;
            j->result = calls[i].run(j, &j->run->call);
            j->error = j->result < 0 ? errno : 0;
            if (atomic_load(&j->run->ends))
                return;
            j->run->call.gettimeofday(j->run->call.userdata, &tv, NULL);
            j->end_us = tv.tv_sec * 1000000 + tv.tv_usec - j->run->start_us;
            return;
        }
    }
    wrong(j, "unknown call %s()", j->event->call);
}

/* A new descriptor is mapped to the number in the script. */
static void name_fd(struct run *r, const struct job *j)
{
    struct fd_entry *f = NULL;

    for (uint32_t i = 0; i < r->n_fds; i++)
        if (r->fd[i].script_fd == j->event->result)
            f = &r->fd[i];
    if (!f && r->n_fds == SCRIPT_FDS_MAX)
        script_fail(r->s, j->event->line, "more than %d descriptors", SCRIPT_FDS_MAX);
    if (!f)
        f = &r->fd[r->n_fds++];
    *f = (struct fd_entry){(int)j->event->result, j->new_live_fd, j->new_peer};
    if (j->new_peer) {
        j->new_peer->n_written = j->new_peer->n_read = 1;
        r->last_conn = f->script_fd;
    }
}

void job_check(struct run *r, struct job *j)
{
    const struct event *e = j->event;
    bool is_fd = j->new_live_fd >= 0 && !e->any_result && e->result >= 0;

    if (j->message[0])
        script_fail(r->s, e->line, "%s(): %s", e->call, j->message);
    if (is_fd)
        name_fd(r, j);
    else if (!e->any_result && j->result != e->result)
        script_fail(r->s, e->line, "%s() returned %lld%s%s, not %lld", e->call,
                    (long long)j->result, j->error ? " " : "",
                    j->error ? name_of_errno(j->error) : "", (long long)e->result);
    if (e->error && e->error != j->error)
        script_fail(r->s, e->line, "%s() failed with %s, not %s", e->call, name_of_errno(j->error),
                    name_of_errno(e->error));
}

void run_call(struct run *r, const struct event *e)
{
    struct job j = {.event = e, .run = r};

    job_run(&j);
    job_check(r, &j);
}
